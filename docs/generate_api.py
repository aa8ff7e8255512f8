"""Writes `reference/api.md`: every operation of the REST API, from the OpenAPI document of the application.

python docs/generate_api.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tradewind.api.airflow2 import FORMS
from tradewind.api.app import create_app
from tradewind.api.config import ApiConfig
from tradewind.api.openapi import document

PAGE = Path(__file__).parent / "reference" / "api.md"

HEAD = """# REST API

This page is generated from the OpenAPI document, which each server publishes at `/openapi.json` (readable at `/docs`). The how-to
is [Use the REST API](../how-to/use-the-rest-api.md).

- Paths below `/api/v2` are those of Airflow 3.3, with its names, filters, pages and errors.
  Paths below `/api/tradewind/v1` are Tradewind's own.
- `~` in place of a DAG id, a run id or a task id means all of them, in lists.
- A page has at most `api.page_limit_max` rows (100). `order_by` may be repeated; `-` in front means descending.
- `*_pattern` finds a part of a text in any case: `%` and `_` are wildcards, `|` means or.
  `*_prefix_pattern` finds the beginning of a text.
- Every error is `{"detail": …}`: a sentence, or for 422 a list of fields. A query parameter that an operation does not
  know is refused with 400.
"""


def page() -> str:
    """The text of the page."""
    config = ApiConfig(database="", scheduler_socket="", logs="", passwords="", jwt_key="", accounts="")
    found = document(create_app(config))
    groups: dict[str, list[str]] = {}
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            groups.setdefault(operation.get("tags", ["Other"])[0], []).append(_operation(method.upper(), path, operation))
    parts = [HEAD]
    for tag in sorted(groups):
        parts.append(f"## {tag}\n")
        parts += groups[tag]
    return "\n".join([*parts, _airflow2()])


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    text = [f"### `{method} {path}`\n", " ".join((operation.get("description") or "").split()) + "\n"]
    given = [one for one in operation.get("parameters", ()) if one["in"] != "path"]
    if given:
        text.append("Parameters: " + ", ".join(_parameter(one) for one in given) + ".\n")
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content:
        text.append(f"Body: {_schema(content['schema'])}.\n")
    answers = []
    for status, answer in operation["responses"].items():
        if status < "400":
            shape = answer.get("content", {}).get("application/json", {}).get("schema")
            answers.append(f"{status}" + (f" {_schema(shape)}" if shape else ""))
    text.append("Answers: " + ", ".join(answers) + ".\n")
    return "\n".join(text)


def _parameter(one: dict[str, Any]) -> str:
    return f"`{one['name']}`" + (" (required)" if one.get("required") else "")


def _schema(schema: dict[str, Any]) -> str:
    choices = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
    return " or ".join(f"`{one['$ref'].rsplit('/', 1)[1]}`" if "$ref" in one else "JSON" for one in choices)


def _airflow2() -> str:
    rows = "\n".join(f"- `{method} /api/v1/{path}`" for method, path in sorted(FORMS, key=lambda one: (one[1], one[0])))
    return f"""## Airflow 2: `/api/v1`

These operations of Airflow 2 are translated to the ones above, with `execution_date` and the other old fields in the answers.
They accept basic authentication. All others answer 404 and name the path that replaces them.

{rows}
"""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
