"""Every page of the manual can be reached from its index, its commands exist, and every rule of `why` is explained."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click
import pytest

from tests.shape.source import ROOT, syntax_tree
from tradewind.cli.main import cli

DOCS = ROOT / "docs"
INDEX = DOCS / "README.md"
WHY = DOCS / "how-to" / "why-is-my-task-not-running.md"
QUESTIONS = DOCS / "how-to" / "common-questions.md"
TOPICS = DOCS / "explanation" / "scheduling.md"


def linked(page: Path) -> set[Path]:
    """The pages that a page links to."""
    targets = re.findall(r"\]\(([^)#\s]+\.md)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    return {(page.parent / target).resolve() for target in targets if "://" not in target}


def test_every_page_is_linked_from_the_index() -> None:
    """Directly, or from the README.md of its folder."""
    found = linked(INDEX) | {INDEX}
    for page in list(found):
        if page.name == "README.md" and page != INDEX:
            found |= linked(page)
    lost = sorted(str(page.relative_to(ROOT)) for page in DOCS.rglob("*.md") if page.resolve() not in found)
    assert lost == [], "add a line to docs/README.md"


def test_the_readme_links_to_the_manual() -> None:
    assert INDEX in linked(ROOT / "README.md")


def commands_in(page: Path) -> set[tuple[str, ...]]:
    """The words after `tradewind` in every command line of a page."""
    text = page.read_text(encoding="utf-8")
    return {tuple(words.split()) for words in re.findall(r"(?:^ *|\$ |`)tradewind((?: [a-z][a-z-]+){1,2})", text, re.MULTILINE)}


@pytest.mark.parametrize("page", [WHY, QUESTIONS, TOPICS, ROOT / "README.md", DOCS / "tutorial.md"], ids=lambda page: page.name)
def test_commands_of_the_manual_exist(page: Path) -> None:
    found = commands_in(page)
    assert found
    for words in found:
        context = click.Context(cli)
        command = cli.get_command(context, words[0])
        assert command is not None, f"{page.name}: tradewind {' '.join(words)}"
        if isinstance(command, click.Group) and len(words) > 1:
            assert command.get_command(context, words[1]) is not None, f"{page.name}: tradewind {' '.join(words)}"


def sections(page: Path) -> dict[str, str]:
    """Heading → the text below it."""
    parts = re.split(r"^## (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


ANSWERED_BY = [
    pytest.param("do I also have to run it", "tradewind tasks clear ", marks=pytest.mark.spec("S462")),
    pytest.param("Why does `b` run too", "tradewind tasks clear ", marks=pytest.mark.spec("S463")),
    pytest.param("marking it success, end it", "tradewind tasks mark ", marks=pytest.mark.spec("S464")),
    pytest.param("not see my new DAG", "tradewind dags list-import-errors", marks=pytest.mark.spec("S465")),
    pytest.param("new DAG run for past dates", "tradewind dags upcoming ", marks=pytest.mark.spec("S466")),
    pytest.param("not stop at its timeout", "tradewind why ", marks=pytest.mark.spec("S467")),
]


@pytest.mark.parametrize(("words", "command"), ANSWERED_BY)
def test_each_of_the_six_questions_is_answered_with_a_command(words: str, command: str) -> None:
    """Other tests prove the behaviour. This one checks that the page has the answer and a command that shows it."""
    found = sections(QUESTIONS)
    assert len(found) == len(ANSWERED_BY)
    (answer,) = [text for question, text in found.items() if words in question and question.endswith("?")]
    assert f"$ {command}" in answer


@pytest.mark.spec("S468")
def test_the_six_topics_of_scheduling_have_a_page() -> None:
    """Questions, states, responsibilities, scheduler, task, dependencies between DAGs; all but the first topic show commands."""
    found = sections(TOPICS)
    assert [heading.partition(".")[0] for heading in found] == ["1", "2", "3", "4", "5", "6"]
    words = ("questions", "states", "Who", "scheduler", "task", "DAGs")
    assert all(word in heading for word, heading in zip(words, found, strict=True))
    assert QUESTIONS in linked(TOPICS)
    assert all("    tradewind " in text for heading, text in found.items() if heading[0] != "1")


def rules() -> set[str]:
    """The first argument of every `Blocker(…)` call in the source."""
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "Blocker(" in text:
            for node in ast.walk(syntax_tree(path)):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Blocker" and node.args:
                    first = node.args[0]
                    if isinstance(first, ast.Constant):
                        found.add(str(first.value))
    return found


def test_every_rule_of_why_is_explained() -> None:
    """After a new `Blocker` rule: explain on the page what blocks the task, and what ends the block."""
    explained = set(
        re.findall(r"`([a-z_]+)`", " ".join(re.findall(r"^\| (`.*?) \|", WHY.read_text(encoding="utf-8"), re.MULTILINE)))
    )
    assert len(rules()) > 30
    assert sorted(rules() - explained) == []
