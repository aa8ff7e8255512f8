from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.commands import incoming, plain
from tradewind.cli.compose.bundles import DAGS_BUNDLE
from tradewind.cli.compose.commands_without_scheduler import open_commands
from tradewind.cli.main import cli, main
from tradewind.execution.xcom_codec import encode_xcom
from tradewind.model.definition import CronSchedule, DagDefinition, NoSchedule, TaskDefinition, encode_definition, version_hash
from tradewind.model.rows import XComWrite
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
    """An empty home folder, set in the environment of the process."""
    for name in list(os.environ):
        if name.startswith(("TRADEWIND_", "AIRFLOW__")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def known(home: Path) -> Path:
    """A home folder whose database has the DAGs alpha (one → two → three) and beta (only)."""
    settings = load()
    settings.paths.prepare()
    store, commands = open_commands(settings)
    try:
        for made in (definition("alpha", "one", "two", "three", cron="0 6 * * *"), definition("beta", "only")):
            data = encode_definition(made)
            carry_out(
                commands,
                "register_file",
                {
                    "bundle": DAGS_BUNDLE,
                    "file": made.fileloc,
                    "file_hash": "x",
                    "dags": [[made.dag_id, data, version_hash(data)]],
                    "duration": 1000,
                    "at": 1_700_000_000_000_000,
                },
            )
    finally:
        store.close()
    return home


def carry_out(commands: Any, name: str, args: dict[str, Any]) -> None:
    """Execute a command on the store. Raises its error."""
    asked = incoming("an op", name, args, "test")
    plain(commands.run(asked._replace(op=os.urandom(8).hex()))[0], asked.command)


@pytest.fixture
def run(home: Path) -> Run:
    """Run one command in this process. The result has `.exit_code`, `.stdout` and `.stderr`."""

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


READS_VALUES = """
from datetime import datetime
from tradewind import DAG, Connection, Variable, task
from tradewind.operators.bash import BashOperator

TOP = Variable.get("top", default="nothing")

with DAG("beta", start_date=datetime(2024, 1, 1), schedule=None):
    @task
    def only(ti=None):
        print("top", TOP, "bucket", Variable.get("bucket"), "host", Connection.get("shop").host)
        Variable.set("bucket", "changed")
        print("now", Variable.get("bucket"), "number", ti.xcom_pull("made"))

    made = BashOperator(task_id="made", bash_command="echo 1")
    made >> only()
    BashOperator(task_id="shown", bash_command="echo {{ ti.xcom_pull('made') }} {{ var.value.bucket }}")
"""


@pytest.fixture
def stored(run: Run, known: Path) -> Path:
    """A variable, a connection, and a run with XComs of each kind."""
    folder = known / "dags"
    folder.mkdir(exist_ok=True)
    (folder / "beta.py").write_text(READS_VALUES)
    assert run("dags", "reserialize").exit_code == 0
    assert run("variables", "set", "bucket", "s3://real").exit_code == 0
    assert run("variables", "set", "top", "high").exit_code == 0
    assert run("connections", "add", "shop", "--conn-type", "http", "--conn-host", "shop.example").exit_code == 0
    assert run("dags", "trigger", "beta", "-r", "mine").exit_code == 0
    (known / "xcom").mkdir(exist_ok=True)
    (known / "xcom" / "abc").write_bytes(encode_xcom(["large"]))
    values: list[tuple[str, int, str, Any]] = [("made", -1, "return_value", 42), ("made", -1, "extra", {"a": "b"})]
    values += [("only", index, "return_value", f"item {index}") for index in (0, 1)]
    rows = [XComWrite(name, index, key, encode_xcom(value), None, 9, 1) for name, index, key, value in values]
    store, _ = open_commands(load())
    store.push_xcoms(store.need_run("beta", "mine").id, [*rows, XComWrite("shown", -1, "big", None, "abc", 9_000_000, 1)])
    store.close()
    return known
