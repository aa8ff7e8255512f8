"""`airflow.jobs.triggerer_job_runner`: finds the class of a trigger, as tests of packages do.

Triggers run in Tradewind's triggerer.
"""

from __future__ import annotations

from typing import Any

from tradewind.airflow.compat.module_loading import import_string

__all__ = ["TriggerRunner"]


class TriggerRunner:
    """Knows the classes of triggers. It runs none."""

    @staticmethod
    def get_trigger_by_classpath(classpath: str) -> type[Any]:
        """The class with this full name.

        Raises:
            ImportError: there is none.
        """
        found: type[Any] = import_string(classpath)
        return found
