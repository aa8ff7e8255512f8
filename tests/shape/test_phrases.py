"""Phrases: each code that the source names has a template, with the same arguments, and a message of the web page.

The page's own check (`ui/check-messages.mjs`) compares the other languages with the English messages.
"""

from __future__ import annotations

import ast
import json
import re
import runpy
from collections.abc import Iterator
from pathlib import Path

from tests.shape.source import syntax_tree
from tests.shape.test_guides import rules
from tradewind.model.phrases import placeholders
from tradewind.model.sentences import TEMPLATES

ROOT = Path(__file__).parents[2]
MESSAGES = ROOT / "ui" / "messages"
LANGUAGES = ("zh-CN", "ko")


def _calls() -> Iterator[tuple[str, str, set[str]]]:
    """(place, pattern of codes, names of the arguments) of every call `phrase(…)` in the source."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        if "phrase(" not in path.read_text(encoding="utf-8"):
            continue
        for node in ast.walk(syntax_tree(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "phrase":
                place, code = f"{path.relative_to(ROOT)}:{node.lineno}", node.args[0]
                assert isinstance(code, ast.Constant | ast.JoinedStr), f"{place}: the code must be written out"
                parts = code.values if isinstance(code, ast.JoinedStr) else [code]
                pattern = "".join(re.escape(str(one.value)) if isinstance(one, ast.Constant) else ".+" for one in parts)
                yield place, pattern, {str(one.arg) for one in node.keywords}


def test_every_phrase_has_a_template_with_its_arguments() -> None:
    """A code that is put together, such as `count_{unit}`, stands for all templates that fit."""
    for place, pattern, arguments in _calls():
        fitting = [code for code in TEMPLATES if re.fullmatch(pattern, code)]
        assert fitting, f"{place}: no template for {pattern}"
        for code in fitting:
            assert placeholders(TEMPLATES[code]) == arguments, f"{place}: {code}"


def test_every_template_is_used() -> None:
    patterns = {pattern for _, pattern, _ in _calls()}
    assert [code for code in TEMPLATES if not any(re.fullmatch(one, code) for one in patterns)] == []


def test_the_english_messages_are_the_templates() -> None:
    """After a change: python docs/generate_phrases.py."""
    written = (MESSAGES / "en" / "phrases.json").read_text(encoding="utf-8")
    assert written == runpy.run_path(str(ROOT / "docs" / "generate_phrases.py"))["text"]()


def test_every_phrase_is_translated() -> None:
    """The same codes in all languages, with the same placeholders."""
    for language in LANGUAGES:
        messages = json.loads((MESSAGES / language / "phrases.json").read_text(encoding="utf-8"))
        assert list(messages) == list(TEMPLATES), language
        for code, message in messages.items():
            assert placeholders(message) == placeholders(TEMPLATES[code]), f"{language}: {code}"


def test_every_rule_of_why_has_a_heading() -> None:
    """The page names each rule in a few words above its sentence."""
    messages = json.loads((MESSAGES / "en" / "why.json").read_text(encoding="utf-8"))
    assert sorted(rule for rule in rules() if f"rule_{rule}" not in messages) == []
