"""`airflow.example_dags.libs.helper`."""

from __future__ import annotations


def print_stuff() -> None:
    """Print a line."""
    print("annotated!")  # noqa: T201
