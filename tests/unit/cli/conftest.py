from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tradewind.cli import compose
from tradewind.cli.main import cli, main
from tradewind.model.definition import CronSchedule, DagDefinition, NoSchedule, TaskDefinition, encode_definition, version_hash
from tradewind.settings import load

Run = Callable[..., Result]


def definition(dag_id: str, *tasks: str, cron: str | None = None) -> DagDefinition:
    """A chain of tasks."""
    made = tuple(
        TaskDefinition(name, operator="BashOperator", upstream=tuple(tasks[place - 1 : place]))
        for place, name in enumerate(tasks)
    )
    schedule = CronSchedule((cron,)) if cron is not None else NoSchedule()
    return DagDefinition(dag_id, made, schedule=schedule, fileloc=f"{dag_id}.py", owners=("me",))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder that the process's environment names."""
    for name in list(os.environ):
        if name.startswith(("TRADEWIND_", "AIRFLOW__")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def known(home: Path) -> Path:
    """A home folder whose database knows the DAGs alpha (one → two → three) and beta (only)."""
    settings = load()
    settings.paths.prepare()
    store, commands = compose.open_commands(settings)
    try:
        for made in (definition("alpha", "one", "two", "three", cron="0 6 * * *"), definition("beta", "only")):
            data = encode_definition(made)
            commands.do_register_file(
                {
                    "bundle": compose.DAGS_BUNDLE,
                    "file": made.fileloc,
                    "file_hash": "x",
                    "dags": [[made.dag_id, data, version_hash(data)]],
                    "duration": 1000,
                    "at": 1_700_000_000_000_000,
                },
                "test",
                compose_effects(),
            )
    finally:
        store.close()
    return home


def compose_effects() -> Any:
    from tradewind.scheduler.effects import Effects

    return Effects()


@pytest.fixture
def run(home: Path) -> Run:
    """Run one command in this process; `.exit_code`, `.stdout`, `.stderr`."""

    def invoke(*words: str, input: str | None = None) -> Result:
        runner = CliRunner()
        with runner.isolation(input=input) as (out, err, _):
            code = main(list(words))
            return Result(runner, out.getvalue(), err.getvalue(), out.getvalue(), None, code, None)

    return invoke


@pytest.fixture
def names() -> list[str]:
    """Every command path: ["standalone"], ["dags list"] …"""
    import click

    found = []
    with click.Context(cli, info_name="tradewind") as root:
        for name in cli.list_commands(root):
            command = cli.get_command(root, name)
            found.append(name)
            if isinstance(command, click.Group):
                with click.Context(command, parent=root) as inner:
                    found += [f"{name} {one}" for one in command.list_commands(inner)]
    return found
