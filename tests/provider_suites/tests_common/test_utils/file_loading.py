"""Files beside the tests."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

_COMMENTS = re.compile(r"(/\*.*?\*/)|(--.*?(\r?\n|\r))|(#.*?(\r?\n|\r))", re.DOTALL)


def load_json_from_resources(*parts: str) -> Any:
    return json.loads(Path(*parts).read_text(encoding="utf-8"))


def load_file_from_resources(*parts: str, mode: str = "r", encoding: str = "utf-8") -> Any:
    """The content; a text that begins with a comment (a license) is returned without its comments."""
    if mode != "r":
        return Path(*parts).read_bytes()
    text = Path(*parts).read_text(encoding=encoding)
    return (_COMMENTS.sub("", text) if _COMMENTS.match(text) else text).strip()


def get_imports_from_file(filepath: str) -> set[str]:
    """Full names of all that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(Path(filepath).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found
