"""`.airflowignore` and `.tradewindignore`: which files of the DAG folder the parser does not read.

The patterns are those of `.gitignore`, which is Airflow's default since version 3: `*` and `?` match inside a name, `**` matches
folders, a leading or inner `/` anchors a pattern at the folder of its file, a trailing `/` matches only folders, `!` negates, `#`
starts a comment. The last matching pattern decides; patterns of a deeper file come after those of a file above it.

The lines of an `.airflowignore` for Airflow 1 and 2 are regular expressions, which match anywhere in the path. If a line looks
like a regular expression (`.*_test\\.py`, `^lib/`), all lines of its file are read as such, unless `core.dag_ignore_file_syntax`
says `glob`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

IGNORE_FILES = (".airflowignore", ".tradewindignore")


class Rule(NamedTuple):
    """One line of an ignore file."""

    pattern: re.Pattern[str]
    """Matches the complete path, relative to the DAG folder."""
    negates: bool
    folders_only: bool


GLOB, REGEXP = "glob", "regexp"
"""Values of `core.dag_ignore_file_syntax`."""

_OF_REGEXP = re.compile(r"\.[*+]|[\^$|()]|\\[.dDwWsSb]")
"""Signs of a regular expression, which glob patterns do not need. `.*` is one, because hidden files are never read anyway."""


def read_rules(text: str, folder: str, syntax: str | None = None) -> tuple[list[Rule], list[str]]:
    """The rules of one ignore file, and its invalid lines.

    Args:
        folder: folder of the ignore file, relative to the DAG folder, with forward slashes; empty for the DAG folder itself.
        syntax: `glob` or `regexp`; None: decided from the lines.
    """
    rules, wrong = [], []
    lines = [line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#")]
    if syntax not in (GLOB, REGEXP):
        syntax = REGEXP if any(_OF_REGEXP.search(line) for line in lines) else GLOB
    for line in lines:
        try:
            rules.append(_rule(line, folder) if syntax == GLOB else _regexp(line, folder))
        except re.error:
            wrong.append(line)
    return rules, wrong


def ignored(path: str, is_folder: bool, rules: Iterable[Rule]) -> bool:
    """True if the rules, applied in order, exclude this path (relative to the DAG folder, with forward slashes)."""
    excluded = False
    for rule in rules:
        if excluded == rule.negates and (is_folder or not rule.folders_only) and rule.pattern.fullmatch(path):
            excluded = not excluded
    return excluded


def _regexp(line: str, folder: str) -> Rule:
    """A rule for the paths in the folder in which the expression is found."""
    expression = re.compile(re.sub(r"\s*#.*", "", line)).pattern  # an invalid expression is an error by itself
    inside = re.escape(folder + "/") if folder else ""
    found = f"(?:{expression[1:]})" if expression.startswith("^") else f".*(?:{expression})"
    return Rule(re.compile(f"{inside}{found}.*", re.DOTALL), negates=False, folders_only=False)


def _rule(line: str, folder: str) -> Rule:
    negates = line.startswith("!")
    if line.startswith(("!", "\\!", "\\#")):
        line = line[1:]
    folders_only = line.endswith("/")
    line = line.rstrip("/")
    anchored = "/" in line
    base = re.escape(folder + "/") if folder else ""
    return Rule(
        re.compile(base + ("" if anchored else "(?:.*/)?") + _translate(line.lstrip("/"))),
        negates,
        folders_only,
    )


_TOKEN = re.compile(r"\*\*/|/\*\*$|\*+|\?|\[!?\]?[^\]]*\]|\\.|.", re.DOTALL)


def _translate(pattern: str) -> str:
    return "".join(_piece(token) for token in _TOKEN.findall(pattern))


def _piece(token: str) -> str:
    if token == "**/":
        return "(?:.*/)?"
    if token == "/**":
        return "/.*"
    if token.startswith("*"):
        return "[^/]*"
    if token == "?":
        return "[^/]"
    if token.startswith("[") and len(token) > 1:
        inside = token[1:-1].replace("\\", "\\\\")
        return f"[^{inside[1:]}]" if inside.startswith("!") else f"[{inside}]"
    return re.escape(token[1:] if token.startswith("\\") and len(token) > 1 else token)
