"""The parts of `standalone`: output, process logs, background jobs, extras, the supervisor; and steps of `clear`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from tests.unit.cli.conftest import Run
from tradewind.cli import process_logs, task_instance_edits
from tradewind.cli.commands import standalone
from tradewind.cli.extras import install_command
from tradewind.cli.live_table import Lines, Table, duration_text, missed_notices
from tradewind.cli.output import aligned, text
from tradewind.cli.process_logs import ChildPipe, log_file, open_log
from tradewind.cli.supervisor import Child, Supervisor
from tradewind.model.errors import ConfigError, NotFound
from tradewind.model.moments import SECOND
from tradewind.model.rows import RunRow
from tradewind.model.states import RunState
from tradewind.observe.log import Log
from tradewind.platform.clock import SystemClock
from tradewind.platform.loop import Loop
from tradewind.settings import load
from tradewind.wire.commands import ClearTasks, Command, EditedTask, EditTasksResult
from tradewind.wire.messages import Notice

AT = 1_700_000_000 * SECOND


# --- screens ------------------------------------------------------------------------------------------------------------------


def test_lines_print_each_start_and_end_once(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()
    lines.notice(Notice("dag", "d"))
    lines.notice(Notice("run", "d", "r", "queued", at=AT))
    lines.notice(Notice("run", "d", "r", "running", at=AT))
    lines.notice(Notice("run", "d", "r", "failed", at=AT + 1_500_000, text="t is failed"))
    started, ended = capsys.readouterr().out.splitlines()
    assert started.endswith("started  d r")
    assert ended.endswith("failed   d r in 1.5 s: t is failed")


def test_the_header_names_servers_that_variables_of_airflow_choose(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert standalone.chosen_servers(load()) == []
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "CeleryExecutor")
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "postgresql://airflow:secret@db/airflow")
    database, executor = standalone.chosen_servers(load())
    assert database.endswith("airflow@db/airflow   (from environment variable AIRFLOW__DATABASE__SQL_ALCHEMY_CONN)")
    assert "secret" not in database
    assert "CeleryExecutor" in executor


def test_lines_survive_a_closed_stdout(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as gone:
        monkeypatch.setattr(sys, "stdout", gone)
        Lines().print_line("nobody hears this")
        assert sys.stdout is not gone
        sys.stdout.close()
        os.dup2(os.open(os.devnull, os.O_WRONLY), gone.fileno())


def test_table_shows_running_runs_first_and_drops_old_ones(tmp_path: Path) -> None:
    table = Table(Loop(SystemClock()), str(tmp_path / "none.db"))
    for number in range(3000):
        table.notice(Notice("run", "d", f"r{number}", "running", at=AT + number))
        if number:
            table.notice(Notice("run", "d", f"r{number}", "success", at=AT + number + 5))
    shown = table._rows_to_show()
    assert (shown[0].run_id, shown[0].state) == ("r0", "running")
    assert shown[1].run_id == "r2999"
    assert len(table._rows) < 1100
    assert table._counts == {"success": 2999, "failed": 0}


class FakeStore:
    def __init__(self, *runs: RunRow) -> None:
        self.runs = {(run.dag_id, run.run_id): run for run in runs}

    def find_run(self, dag_id: str, run_id: str) -> RunRow | None:
        return self.runs.get((dag_id, run_id))

    def active_runs(self, dag_id: str | None = None) -> list[RunRow]:
        return [run for run in self.runs.values() if run.state in (RunState.QUEUED, RunState.RUNNING)]


def a_run(run_id: str, state: RunState, started: int | None, ended: int | None = None) -> RunRow:
    known = {"dag_id": "d", "run_id": run_id, "state": state, "queued_at": AT, "started_at": started, "ended_at": ended}
    return RunRow(**{name: known.get(name) for name in RunRow._fields})  # type: ignore[arg-type]


def test_the_table_catches_up_after_a_scheduler_restart(tmp_path: Path) -> None:
    table = Table(Loop(SystemClock()), str(tmp_path / "none.db"))
    for run_id in ("ended", "runs", "deleted"):
        table.notice(Notice("run", "d", run_id, "running", at=AT))
    store = FakeStore(
        a_run("ended", RunState.SUCCESS, AT, AT + SECOND),
        a_run("runs", RunState.RUNNING, AT + 7),
        a_run("new", RunState.RUNNING, AT + 2 * SECOND),
    )
    for _ in range(2):  # what comes twice counts once
        for notice in missed_notices(store, table.open_runs()):
            table.notice(notice)
    shown = [(row.run_id, row.state, row.started, row.ended) for row in table._rows_to_show()]
    assert shown == [
        ("runs", "running", AT, None),
        ("new", "running", AT + 2 * SECOND, None),
        ("ended", "success", AT, AT + SECOND),
    ]
    assert table._counts == {"success": 1, "failed": 0}


def test_lines_catch_up_after_a_scheduler_restart(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()
    lines.notice(Notice("run", "d", "ended", "running", at=AT))
    lines.notice(Notice("run", "d", "runs", "running", at=AT))
    capsys.readouterr()
    store = FakeStore(a_run("ended", RunState.FAILED, AT, AT + SECOND), a_run("runs", RunState.RUNNING, AT + 7))
    for notice in missed_notices(store, lines.open_runs()):
        lines.notice(notice)
    (output,) = capsys.readouterr().out.splitlines()
    assert output.endswith("failed   d ended in 1.0 s")
    assert lines.open_runs() == [("d", "runs")]


@pytest.mark.parametrize(("width", "there", "gone"), [(80, "State", "Took"), (120, "Took", "…")])
def test_the_live_table_keeps_ids_whole(
    width: int, there: str, gone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    table = Table(Loop(SystemClock()), str(tmp_path / "none.db"))
    run_id = "manual__2026-11-20T20:17:15.007451+00:00"
    table.notice(Notice("run", "a_daily_report", run_id, "running", at=AT))
    table._console.print(table._table())
    output = capsys.readouterr().out
    assert "a_daily_report" in output
    assert run_id in output
    assert (there in output, gone in output) == (True, False), output


@pytest.mark.parametrize(
    ("micros", "expected"),
    [(850_000, "850 ms"), (12_340_000, "12.3 s"), (245 * SECOND, "4 min 5 s"), (7380 * SECOND, "2 h 3 min")],
)
def test_durations_as_text(micros: int, expected: str) -> None:
    assert duration_text(micros) == expected


def test_a_failing_table_is_replaced_by_lines(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = load()
    settings.paths.prepare()
    service = standalone.Standalone(settings, dict(os.environ), "http://x", [], plain=True)

    class Broken(Lines):
        def notice(self, notice: Notice) -> None:
            raise ZeroDivisionError("no terminal")

    service.screen = Table(service.supervisor.loop, settings.paths.database)
    service.screen.notice = Broken().notice  # type: ignore[method-assign]
    service._on_notice(Notice("run", "d", "r", "running", at=AT))
    assert isinstance(service.screen, Lines)
    assert "no terminal" in capsys.readouterr().out


def test_cells() -> None:
    assert [text(value) for value in (None, True, 1.5, [1, "a"], {}, {"a": 1}, "x")] == [
        "",
        "True",
        "1.5",
        "1, a",
        "",
        '{"a": 1}',
        "x",
    ]
    assert aligned(["a", "b"], [["1\n2", "x"]], plain=True) == "a      b\n1 ⏎ 2  x\n"


# --- logs of processes ----------------------------------------------------------------------------------------------------------


def test_a_large_log_is_rotated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_logs, "ROTATE_AT", 10)
    home = str(tmp_path)
    for number in range(6):
        fd = open_log(home, "api")
        os.write(fd, f"life number {number}\n".encode())
        os.close(fd)
    texts = [Path(log_file(home, "api") + ending).read_text() for ending in ("", ".1", ".2", ".3")]
    assert texts == [f"life number {number}\n" for number in (5, 4, 3, 2)]
    assert not Path(log_file(home, "api") + ".4").exists()
    assert Path(log_file(home, "api")).stat().st_mode & 0o077 == 0


def test_the_pipe_delivers_whole_lines_and_never_blocks_its_writer() -> None:
    loop = Loop(SystemClock())
    received: list[str] = []
    pipe = ChildPipe(loop, received.append)
    os.write(pipe.write, b"one\ntw")
    loop.turn()
    os.write(pipe.write, b"o\n")
    loop.turn()
    assert received == ["one", "two"]
    assert not os.get_blocking(pipe.write)


def test_a_process_sends_warnings_to_the_supervisor_and_its_children_do_not_inherit_the_pipe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tradewind.cli import process

    read, write = os.pipe()
    monkeypatch.setenv(process.SUPERVISOR_PIPE, str(write))
    import logging

    before = list(logging.getLogger().handlers)
    try:
        process._open_pipe("api")
        assert process.SUPERVISOR_PIPE not in os.environ
        assert not os.get_inheritable(write)
        Log("api").info("small talk")
        Log("api").warning("the disk is nearly full", left=3)
        process.send_to_supervisor("!address http://x")
        first, second = os.read(read, 10_000).decode().splitlines()
        assert "the disk is nearly full left=3" in first
        assert second == "!address http://x"
    finally:
        logging.getLogger().handlers[:] = before
        process._pipe = -1
        os.close(read)
        os.close(write)


# --- the supervisor -------------------------------------------------------------------------------------------------------------


def writes_its_name_when_stopped(name: str, parent: int) -> int:
    def stop(*_: object) -> None:
        os.write(1, f"{name} ".encode())
        os._exit(0)

    signal.signal(signal.SIGTERM, stop)
    os.write(1, b"up ")
    while True:
        signal.pause()


def test_children_stop_in_order_and_background_jobs_end_too(tmp_path: Path) -> None:
    output = os.open(tmp_path / "out", os.O_CREAT | os.O_RDWR | os.O_APPEND)
    children = [Child(name, dict(os.environ), output=output) for name in ("first", "second", "third")]
    supervisor = Supervisor(SystemClock(), writes_its_name_when_stopped, children, lambda child: None)
    ended: list[int] = []
    seen = ""

    def look() -> None:
        nonlocal seen
        seen = (tmp_path / "out").read_text()
        if seen.count("up") == 3:
            supervisor.run_in_background(
                [sys.executable, "-c", "import signal; signal.pause()"], os.environ, output, ended.append
            )
            supervisor.stop()
        else:
            supervisor.loop.call_later(10_000, look)

    supervisor.loop.call_later(0, look)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)}
    try:
        supervisor.run(children)
    finally:
        signal.set_wakeup_fd(-1)
        for number, handler in before.items():
            signal.signal(number, handler)
    assert supervisor._background == {}
    assert (tmp_path / "out").read_text().split()[3:] == ["first", "second", "third"]
    os.close(output)


# --- extras and ports -------------------------------------------------------------------------------------------------------------


def test_the_install_command_of_an_extra() -> None:
    name, command = install_command("plots")
    assert name == "plots"
    assert any(word.startswith("matplotlib") for word in command)
    assert "install" in command
    with pytest.raises(NotFound, match="'plots'"):
        install_command("plot")


def test_a_reserved_port_stays_reserved_until_the_server_listens(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setenv("TRADEWIND__API__PORT", "0")
    holder, address = standalone.reserve_address(load())
    port = holder.getsockname()[1]
    assert address == f"http://127.0.0.1:{port}"
    with holder, socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", port))
        server.listen()
        monkeypatch.setenv("TRADEWIND__API__PORT", str(port))
        with pytest.raises(ConfigError, match=f"port {port}.*--port"):
            standalone.reserve_address(load())


# --- what commands ask for ------------------------------------------------------------------------------------------------------


class FakeClient:
    """Records the commands that it gets."""

    def __init__(self) -> None:
        self.calls: list[Command[EditTasksResult]] = []
        self.offline = False

    def call(self, command: Command[EditTasksResult]) -> EditTasksResult:
        self.calls.append(command)
        row = EditedTask("alpha", f"r{len(self.calls)}", "two", -1, "failed", "none")
        return EditTasksResult([row], dry_run=False, next=(5, 1) if len(self.calls) == 1 else None)


def test_clear_passes_every_option_and_continues_step_by_step(run: Run, known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeClient()
    monkeypatch.setattr(task_instance_edits, "command_client", lambda: fake)
    done = run(
        *("tasks", "clear", "alpha", "-t", "tw", "-s", "2024-01-01", "-e", "2024-01-02T00:00:00Z", "-d", "-u", "-f", "-y")
    )
    assert done.exit_code == 0, done.stderr
    asked = ClearTasks(
        "alpha",
        task_ids=["two"],
        start=1_704_067_200 * SECOND,
        end=1_704_153_600 * SECOND,
        downstream=True,
        upstream=True,
        only_failed=True,
    )
    assert fake.calls == [asked, msgspec.structs.replace(asked, after=(5, 1))]
    assert done.stdout == "Cleared 2 task instances of 2 runs.\n"
