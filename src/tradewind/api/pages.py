"""HTML pages without scripts: a list of all routes, and a front page for an installation in which the web page was not built."""

from __future__ import annotations

from html import escape
from typing import Any

STYLE = """
:root { color-scheme: light dark; --line: #8884; --faint: #8889; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 3rem auto; padding: 0 1rem; }
h1 { font-weight: 600; letter-spacing: -0.02em; }
code { font: 0.9em/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
section { border-top: 1px solid var(--line); padding: 0.5rem 0; }
dl { display: grid; grid-template-columns: 4.5rem 1fr; gap: 0.2rem 1rem; margin: 0.3rem 0 1rem; }
dt { font-weight: 600; } dd { margin: 0; } small { color: var(--faint); display: block; }
"""


def front_page(version: str) -> str:
    return _page(
        "Tradewind",
        f"""<h1>Tradewind</h1>
<p>This is the API of a workflow orchestrator for people who know Apache Airflow. It serves Airflow's <code>/api/v2</code>.</p>
<p>The web page was not built in this checkout. <code>make ui</code> builds it (with Node 20.19 or newer); then reload this
page.</p>
<ul>
<li><a href="docs">All routes</a> (<a href="openapi.json">as OpenAPI</a>)</li>
<li><a href="api/v2/monitor/health">Health</a></li>
</ul>
<p>Log in with <code>POST /auth/token</code>; the command line (<code>tradewind --help</code>) can do the same.</p>
<p><small>Version {escape(version)}</small></p>""",
    )


def problem_page(title: str, body: str) -> str:
    """A page that explains an error. `body`: HTML."""
    return _page(title, body)


def docs_page(document: dict[str, Any]) -> str:
    """The OpenAPI document as an HTML page."""
    groups: dict[str, list[str]] = {}
    for path, operations in sorted(document["paths"].items()):
        for method, operation in operations.items():
            groups.setdefault(operation.get("tags", ["Other"])[0], []).append(_operation(path, method, operation))
    sections = "".join(
        f"<section><h2>{escape(tag)}</h2><dl>{''.join(entries)}</dl></section>" for tag, entries in sorted(groups.items())
    )
    return _page(
        "Tradewind: routes of the API",
        f"""<h1>Routes of the API</h1>
<p>Send <code>Authorization: Bearer &lt;token&gt;</code> with a token from <code>POST /auth/token</code>. Errors are
<code>{{"detail": "…"}}</code>. The same as <a href="openapi.json">OpenAPI</a>.</p>{sections}""",
    )


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    names = [one["name"] for one in operation.get("parameters", []) if one["in"] == "query"]
    query = f"<small>{escape(', '.join(names))}</small>" if names else ""
    summary = escape(operation.get("description") or operation.get("summary", "")).replace("\n\n", "<br>")
    return f"<dt>{escape(method.upper())}</dt><dd><code>{escape(path)}</code><br>{summary}{query}</dd>"


def _page(title: str, body: str) -> str:
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/style.css"></head>'
        f"<body>{body}</body></html>\n"
    )
