"""`.airflowignore` and `.tradewindignore`: which files of the DAG folder the parser does not read.

The patterns are those of `.gitignore`, which is Airflow's default since version 3: `*` and `?` match inside a name, `**` matches
folders, a leading or inner `/` anchors a pattern at the folder of its file, a trailing `/` matches only folders, `!` negates, `#`
starts a comment. The last matching pattern decides; patterns of a deeper file come after those of a file above it.
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


def read_rules(text: str, folder: str) -> tuple[list[Rule], list[str]]:
    """The rules of one ignore file, and its invalid lines.

    Args:
        folder: folder of the ignore file, relative to the DAG folder, with forward slashes; empty for the DAG folder itself.
    """
    rules, wrong = [], []
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        try:
            rules.append(_rule(line, folder))
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
