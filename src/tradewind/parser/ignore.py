"""`.airflowignore` and `.tradewindignore`: which files of the DAG folder are none of ours.

The patterns are those of `.gitignore`, Airflow's default since version 3: `*` and `?` stay inside a name, `**` crosses folders, a
leading or inner `/` ties a pattern to the folder of its file, a trailing `/` means folders only, `!` takes back, `#` comments.
The last pattern that matches decides; a file deeper in the tree comes after one above it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

IGNORE_FILES = (".airflowignore", ".tradewindignore")


class Rule(NamedTuple):
    """One line of an ignore file."""

    pattern: re.Pattern[str]
    """Matches the whole path relative to the DAG folder."""
    takes_back: bool
    folders_only: bool


def read_rules(text: str, folder: str) -> tuple[list[Rule], list[str]]:
    """The rules of one ignore file, and the lines that cannot be read.

    Args:
        folder: where it lies, relative to the DAG folder, with forward slashes; empty for the DAG folder itself.
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
    """Do the rules, in their order, exclude this path (relative to the DAG folder, forward slashes)?"""
    verdict = False
    for rule in rules:
        if verdict == rule.takes_back and (is_folder or not rule.folders_only) and rule.pattern.fullmatch(path):
            verdict = not verdict
    return verdict


def _rule(line: str, folder: str) -> Rule:
    takes_back = line.startswith("!")
    if line.startswith(("!", "\\!", "\\#")):
        line = line[1:]
    folders_only = line.endswith("/")
    line = line.rstrip("/")
    anchored = "/" in line
    base = re.escape(folder + "/") if folder else ""
    return Rule(
        re.compile(base + ("" if anchored else "(?:.*/)?") + _translate(line.lstrip("/"))),
        takes_back,
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
