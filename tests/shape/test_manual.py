"""The manual is correct: generated pages are up to date, links exist, and its DAG files can be loaded."""

from __future__ import annotations

import inspect
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shape.source import ROOT
from tradewind.sdk import dag as dag_module
from tradewind.sdk.arguments import KNOWN_ARGUMENTS
from tradewind.sdk.dag import DAG
from tradewind.sdk.load import load_file

DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def test_the_page_of_commands_is_up_to_date() -> None:
    """After a change of a command: make docs."""
    generated = runpy.run_path(str(DOCS / "generate_cli.py"))["page"]()
    assert (DOCS / "reference" / "cli.md").read_text(encoding="utf-8") == generated


def test_the_page_of_airflows_commands_is_up_to_date() -> None:
    """After a change of the table of Airflow's commands: make docs."""
    generated = runpy.run_path(str(DOCS / "generate_airflow_commands.py"))["page"]()
    assert (DOCS / "reference" / "airflow-commands.md").read_text(encoding="utf-8") == generated


def test_the_page_of_examples_is_up_to_date() -> None:
    """After a change of an example: make docs."""
    code = "import runpy, sys; sys.stdout.write(runpy.run_path(sys.argv[1])['page']())"
    command = [sys.executable, "-c", code, str(DOCS / "generate_examples.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True, cwd=ROOT)
    assert (DOCS / "examples.md").read_text(encoding="utf-8") == done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_linked_files_exist(page: Path) -> None:
    """Links to files of this project. (Other sites are not checked.)"""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    lost = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    # written by `make bench`, which a fresh clone has not run
    assert [target for target in lost if not target.endswith("RESULTS.md")] == []


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_linked_headings_exist(page: Path) -> None:
    """Links to a heading, of the same page or of another one: `[limits](operations.md#limits)`."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#\s:]*\.md)?#([^)\s]+)\)", text)
    missing = [f"{target}#{name}" for target, name in links if name not in anchors(page.parent / target if target else page)]
    assert missing == []


@pytest.mark.parametrize(("page", "dag_id"), [("README.md", "letters"), ("docs/tutorial.md", "orders")])
def test_the_first_dag_of_a_page_can_be_loaded(page: str, dag_id: str, tmp_path: Path) -> None:
    """A newcomer copies this DAG first, so it must work."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    (tmp_path / "copied.py").write_text(blocks[0], encoding="utf-8")
    assert len(blocks[0].splitlines()) <= 26
    assert list(load_file(str(tmp_path), "copied.py").dags) == [dag_id]


def test_the_readme_begins_with_the_two_commands() -> None:
    """They come before every other command."""
    first = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)[0]
    assert [line.split("#")[0].strip() for line in first.splitlines()] == ["make run", "make test"]


def test_every_make_target_has_a_line_of_help() -> None:
    """So `make help` lists all targets."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):(.*)$", text, flags=re.MULTILINE)
    assert [name for name, rest in targets if "##" not in rest] == []


AUTHORING = DOCS / "reference" / "authoring.md"


def test_every_argument_is_explained_on_the_page_of_authors() -> None:
    """Every argument of DAGs and tasks, also those that are ignored or refused. After a new argument: add it to the page."""
    text = AUTHORING.read_text(encoding="utf-8")
    of_dags, of_tasks = text.split("## Arguments of ")[1:3]
    dag_names = {name for name in inspect.signature(DAG.__init__).parameters if name not in ("self", "older")}
    dag_names |= {*dag_module._NO_EFFECT, *dag_module._RENAMED, "schedule_interval", "timetable"}
    assert [name for name in sorted(dag_names) if f"`{name}`" not in of_dags] == []
    assert [name for name in sorted(KNOWN_ARGUMENTS) if f"`{name}`" not in of_tasks] == []


def test_the_dag_on_the_page_of_authors_runs(tmp_path: Path) -> None:
    """The DAG is complete, and its tasks end as the page says."""
    (block,) = re.findall(r"```python\n(.*?)```", AUTHORING.read_text(encoding="utf-8"), flags=re.DOTALL)
    (tmp_path / "page.py").write_text(block, encoding="utf-8")
    dag = load_file(str(tmp_path), "page.py").dags["cluster_report"]
    run = dag.test(say=lambda line: None)
    assert {name: str(task.state.value) for name, task in run.tasks.items()} == {
        "make_cluster": "success",
        "drop_cluster": "success",
        "report": "success",
    }


def test_every_command_of_the_guide_from_airflow_exists() -> None:
    """The guide also names every Tradewind command, except refused ones and the group `providers`."""
    import click

    from tradewind.cli.main import cli

    text = (DOCS / "how-to" / "cli-from-airflow.md").read_text(encoding="utf-8")
    named = {match.split(" -")[0].strip() for match in re.findall(r"`tradewind ([^`]+)`", text)}
    known: set[str] = set()
    with click.Context(cli, info_name="tradewind") as root:
        for name in cli.list_commands(root):
            command = cli.get_command(root, name)
            if isinstance(command, click.Group):
                with click.Context(command, info_name=name, parent=root) as inner:
                    known |= {f"{name} {one}" for one in command.list_commands(inner)}
            else:
                known.add(name)
    assert named - known - {'completion bash)"'} == set()
    refused = {"db downgrade", "db export-archived", "completion"}
    others = {name for name in known if name.startswith("providers ")}
    assert known - named - refused - others == set()
