"""The scheduler behind its real socket: commands, hosts, followers, strangers, a locked database."""

from __future__ import annotations

import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands import PlainClient, request
from tests.unit.scheduler.bench import DEFAULTS, task
from tradewind.executors.local import LocalExecutor
from tradewind.model.assets import AssetKey, AssetUse
from tradewind.model.definition import DagDefinition, encode_definition, version_hash
from tradewind.model.errors import NotFound, StoreBusy, Unreachable, WireError, WrongArgument
from tradewind.model.moments import SECOND
from tradewind.model.rows import NewJob
from tradewind.model.states import Outcome
from tradewind.platform.clock import SystemClock
from tradewind.scheduler.attempts.remote_workers import RemoteWorkers
from tradewind.scheduler.composition import compose_server
from tradewind.scheduler.config import SchedulerConfig
from tradewind.scheduler.jobs import SCHEDULER, JobRegistry
from tradewind.scheduler.server import RECOVER_EVERY, SchedulerServer
from tradewind.store.factory import open_reader, open_store
from tradewind.testing.inline_runtime import PlainCipher
from tradewind.wire.frames import FrameReader, frame
from tradewind.wire.messages import (
    CLIENT_PROTOCOL,
    PROTOCOL,
    Accepted,
    AssetsChanged,
    AttemptGone,
    Cancel,
    ClientHello,
    CommandResult,
    FromRunner,
    GetVariable,
    HostHello,
    Notice,
    OutsideAssetEvent,
    Reconcile,
    Refused,
    Report,
    Start,
    Submit,
    ToRunner,
    TriggerRun,
    Unlisted,
    Value,
    Welcome,
    decode_from_scheduler,
    encode,
)

TIMEOUT = 10.0


class Deployment:
    """A server in a thread over a database file; it may be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = str(folder / "s.sock")
        self.database = folder / "tradewind.db"
        self._thread: threading.Thread | None = None
        self.server: SchedulerServer | None = None
        self.start()

    def start(self) -> None:
        ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(ready,), daemon=True)
        self._thread.start()
        assert ready.wait(TIMEOUT)

    def _serve(self, ready: threading.Event) -> None:
        clock, config = SystemClock(), SchedulerConfig(**DEFAULTS)
        store = open_store(self.database, busy_timeout_ms=50, synchronous="NORMAL")
        epoch = store.begin_epoch("here", 1, "boot", clock.wall())
        own = NewJob("scheduler", SCHEDULER, "here", "ada", 1)
        self.server = compose_server(
            store,
            clock,
            config,
            LocalExecutor(),
            epoch,
            PlainCipher(),
            self.socket,
            lambda scheduler: [],
            jobs=JobRegistry(store, clock, own),
            remote_workers=RemoteWorkers(clock, 900 * SECOND),
        )
        self.server.loop.on_signal = lambda number, call: None  # type: ignore[method-assign]
        listen = self.server._listen

        def listening() -> socket.socket:
            listener = listen()
            ready.set()
            return listener

        self.server._listen = listening  # type: ignore[method-assign]
        self.server.run()

    def stop(self) -> None:
        assert self.server is not None
        self.server.loop.stop()
        self.wait_for_end()

    def wait_for_end(self) -> None:
        assert self._thread is not None
        try:
            Line(self.socket).close()  # wakes it
        except OSError:
            pass
        self._thread.join(TIMEOUT)
        assert not self._thread.is_alive()

    def job_states(self) -> dict[str, str]:
        store = open_reader(self.database)
        try:
            return {job.service_id: job.state for job in store.jobs(100)}
        finally:
            store.close()

    def gateways(self) -> dict[str, frozenset[str]]:
        store = open_reader(self.database)
        try:
            return store.worker_gateways()
        finally:
            store.close()

    def client(self, timeout: float = TIMEOUT) -> PlainClient:
        return PlainClient(self.socket, "test", timeout)

    def dag(self, dag_id: str, *tasks: Any, **more: Any) -> None:
        data = encode_definition(DagDefinition(dag_id, tasks=tasks, is_paused_upon_creation=False, **more))
        with self.client() as client:
            client.call(
                "register_file",
                bundle="dags",
                file=f"{dag_id}.py",
                file_hash="h",
                dags=[[dag_id, data, version_hash(data)]],
                duration=1,
                at=1,
            )

    def run_state(self, dag_id: str, run_id: str) -> str:
        store = open_reader(self.database)
        try:
            return store.need_run(dag_id, run_id).state.value
        finally:
            store.close()


class Line:
    """A raw connection."""

    def __init__(self, path: str) -> None:
        self.link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.link.settimeout(TIMEOUT)
        self.link.connect(path)
        self._reader = FrameReader()
        self._documents: list[bytes] = []

    def say(self, message: object) -> None:
        self.link.sendall(frame(encode(message)))

    def hear(self) -> Any:
        """The next message; None: the server has closed the connection."""
        while not self._documents:
            data = self.link.recv(65536)
            if not data:
                return None
            self._documents.extend(self._reader.feed(data))
        return decode_from_scheduler(self._documents.pop(0))

    def hear_of(self, kind: type) -> Any:
        """The next message of a kind."""
        while not isinstance(message := self.hear(), kind):
            assert message is not None, f"the connection was closed before a {kind.__name__} arrived"
        return message

    def host(self, name: str = "h1", live: tuple[Any, ...] = (), protocol: int = PROTOCOL) -> Welcome:
        self.say(HostHello(name, 1, "here", live=live, protocol=protocol))
        welcome = self.hear_of(Welcome)
        assert isinstance(welcome, Welcome)
        return welcome

    def close(self) -> None:
        self.link.close()


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not true():
        assert time.monotonic() < deadline, "it never came true"


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    deployment = Deployment(tmp_path)
    yield deployment
    deployment.stop()


def test_a_run_through_a_host(deployment: Deployment) -> None:
    """Trigger → submit → start → report → end of the run, and a follower gets notices."""
    deployment.dag("d", task("a"), task("b", "a"))
    host, follower = Line(deployment.socket), Line(deployment.socket)
    assert host.host().refused is None
    follower.say(ClientHello("watcher", 1, follow=True))
    with deployment.client() as client:
        client.call("trigger", dag_id="d", run_id="r")
        for number in range(2):
            (work,) = host.hear_of(Submit).workloads
            host.say(FromRunner(work.key, Start(1, "nonce", 7)))
            assert host.hear_of(ToRunner).body == Accepted(1, "nonce")
            host.say(FromRunner(work.key, GetVariable(2, "k")))
            assert host.hear_of(ToRunner).body == Value(2, False)
            host.say(FromRunner(work.key, Report(3, Outcome.SUCCESS)))
            assert isinstance(host.hear_of(ToRunner).body, Accepted)
            assert work.task_id == "ab"[number]
        state = client.call("ping")
    assert (state["live_runs"], state["workers"][0]["host"], state["trouble"]) == (0, "h1", None)
    assert deployment.run_state("d", "r") == "success"
    while follower.hear_of(Notice).state != "success":
        pass


def test_a_start_of_a_host_that_has_not_registered_is_not_accepted(deployment: Deployment) -> None:
    """Nobody could say which worker runs the attempt. The host asks again."""
    deployment.dag("d", task("a"))
    host = Line(deployment.socket)
    host.host("w2.h1")
    with deployment.client() as client:
        client.call("trigger", dag_id="d", run_id="r")
        submit = host.hear_of(Submit)
        assert isinstance(submit, Submit)
        host.close()
        key = submit.workloads[0].key
        again = Line(deployment.socket)
        again.say(FromRunner(key, Start(1, "n", 4711)))
        again.host("w2.h1", live=(key,))
        again.say(FromRunner(key, Start(2, "n", 4711)))
        answer = again.hear_of(ToRunner)
        assert isinstance(answer, ToRunner)
        assert (answer.body.op, type(answer.body)) == (2, Accepted)


def test_another_protocol_is_refused_with_a_sentence(deployment: Deployment) -> None:
    old = Line(deployment.socket)
    old.say(ClientHello("old", 1, protocol=99))
    assert old.hear() == Welcome(
        1, CLIENT_PROTOCOL, f"it speaks protocol 99, the scheduler {CLIENT_PROTOCOL}; restart both with the same release"
    )
    assert old.hear() is None, "and the line is closed"
    host = Line(deployment.socket)
    assert "restart it with this release" in (host.host(protocol=99).refused or "")
    with deployment.client() as client:
        assert not client.call("ping")["workers"]


def test_a_client_of_another_protocol_says_so(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tradewind.client.control.ClientHello", lambda name, pid, follow: ClientHello(name, pid, follow, 99))
    with pytest.raises(WireError, match="it speaks protocol 99"), deployment.client() as client:
        client.call("ping")


@pytest.mark.parametrize(
    "rubbish",
    [b"GET / HTTP/1.1\r\n\r\n" * 10, frame(b"\xc1\xc1"), frame(encode({"type": "unheard of"})), b"\xff" * 64, frame(b"")],
)
def test_an_invalid_message_disconnects_only_its_sender(deployment: Deployment, rubbish: bytes) -> None:
    host, stranger = Line(deployment.socket), Line(deployment.socket)
    host.host()
    stranger.link.sendall(rubbish)
    assert stranger.hear() is None
    deployment.dag("d", task("a"))
    with deployment.client() as client:
        client.call("trigger", dag_id="d", run_id="r")
    assert host.hear_of(Submit).workloads[0].task_id == "a"


def test_an_incomplete_frame_affects_no_other_client(deployment: Deployment) -> None:
    torn = Line(deployment.socket)
    torn.link.sendall(frame(encode(ClientHello("torn", 1)))[:-3])
    with deployment.client() as client:
        assert client.call("ping")["live_runs"] == 0
    torn.close()
    with deployment.client() as client:
        assert client.call("ping")["live_runs"] == 0


def test_errors_of_commands_are_answered(deployment: Deployment) -> None:
    with deployment.client() as client:
        with pytest.raises(NotFound, match="There is no DAG"):
            client.call("trigger", dag_id="none")
        with pytest.raises(WrongArgument, match="slots"):
            client.call("set_pool", name="p", slots="many")
        with pytest.raises(NotFound):
            client.call("why", dag_id="none", task_id="a")
        assert client.call("ping")["trouble"] is None
    line = Line(deployment.socket)
    line.say(request("op-1", "tirgger", {}))
    refused = line.hear_of(CommandResult)
    assert (refused.op, refused.error) == ("op-1", "WrongArgument")
    assert "Did you mean 'trigger'?" in refused.message
    line.close()


def test_a_repeated_command_is_executed_once(deployment: Deployment) -> None:
    deployment.dag("d", task("a"))
    answers = []
    for _ in range(2):
        line = Line(deployment.socket)
        line.say(request("op-1", "trigger", {"dag_id": "d"}))
        answers.append(line.hear_of(CommandResult))
        line.close()
    assert answers[0] == answers[1]
    assert answers[0].error is None


def test_the_parser_is_told_of_an_event_that_a_person_has_created(deployment: Deployment) -> None:
    """Its child process calls the listeners of plugins."""
    asset = AssetKey("a", "a")
    deployment.dag("d", task("t"), asset_uses=(AssetUse("t", "outlet", asset),))
    parser = Line(deployment.socket)
    parser.say(ClientHello("parser", 1, answers_timetables=True))
    parser.hear_of(Welcome)
    with deployment.client() as client:
        client.call("create_asset_event", name="a", extra={"rows": 2})
    assert parser.hear_of(AssetsChanged).events == (OutsideAssetEvent(asset, {"rows": 2}),)
    parser.close()


def test_a_task_triggers_once_in_each_try(deployment: Deployment) -> None:
    """The run is created and starts. A repeated request, also of the next attempt of the same try, creates no second run."""
    deployment.dag("d", task("a", lost_attempts="repeat"))
    deployment.dag("other", task("b"))
    host = Line(deployment.socket)
    host.host()
    with deployment.client() as client:
        client.call("trigger", dag_id="d", run_id="r")
    (work,) = host.hear_of(Submit).workloads
    trigger = TriggerRun(2, "other", 1, logical_date=1_000_000)
    host.say(FromRunner(work.key, trigger))
    assert host.hear_of(ToRunner).body == Value(2, True, {"done": "created", "run_id": RUN_ID, "logical_date": 1_000_000})
    assert host.hear_of(Submit).workloads[0].dag_id == "other"
    host.say(FromRunner(work.key, Start(1, "nonce", 7)))
    assert host.hear_of(ToRunner).body == Accepted(1, "nonce")
    host.say(FromRunner(work.key, trigger))
    assert host.hear_of(ToRunner).body.value["done"] == "created"
    host.say(AttemptGone(work.key, "its worker died", "nonce"))
    (again,) = host.hear_of(Submit).workloads
    assert again.key == (*work.key[:2], 2)
    host.say(FromRunner(again.key, TriggerRun(5, "other", 1, logical_date=2_000_000)))
    assert host.hear_of(ToRunner).body.value == {"done": "created", "run_id": RUN_ID, "logical_date": 1_000_000}
    host.say(FromRunner(again.key, TriggerRun(6, "other", 2, logical_date=1_000_000)))
    assert host.hear_of(ToRunner).body.value["done"] == "exists", "another question of the same try"
    host.say(FromRunner(work.key, TriggerRun(7, "other", 3)))
    assert "not the current one" in host.hear_of(ToRunner).body.reason
    host.say(FromRunner(again.key, TriggerRun(8, "othr", 3)))
    assert "Did you mean 'other'?" in host.hear_of(ToRunner).body.reason


RUN_ID = "manual__1970-01-01T00:00:01+00:00"


def test_a_locked_database_is_reported_and_waited_for(deployment: Deployment) -> None:
    """Another process has locked the database: commands get an error, a report is kept, and later work continues by itself."""
    deployment.dag("d", task("a"), task("b", "a"))
    host = Line(deployment.socket)
    host.host()
    with deployment.client() as client:
        client.call("trigger", dag_id="d", run_id="r")
        (work,) = host.hear_of(Submit).workloads
        host.say(FromRunner(work.key, Start(1, "n", 7)))
        assert host.hear_of(ToRunner).body == Accepted(1, "n")
        holder = sqlite3.connect(deployment.database, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match="locked by another process"):
            client.call("trigger", dag_id="d", run_id="r2")
        host.say(FromRunner(work.key, Report(2, Outcome.SUCCESS)))
        until(lambda: client.call("ping")["trouble"] is not None)
        assert "store" in [b["rule"] for b in client.call("why", dag_id="d", task_id="b", run_id="r")["blockers"]]
        holder.execute("ROLLBACK")
        holder.close()
        assert isinstance(host.hear_of(ToRunner).body, Accepted)
        assert host.hear_of(Submit).workloads[0].task_id == "b"
        client.call("trigger", dag_id="d", run_id="r2")
        assert client.call("ping")["trouble"] is None
    line = Line(deployment.socket)
    line.say(request("op-1", "tirgger", {}))
    refused = line.hear_of(CommandResult)
    assert (refused.op, refused.error) == ("op-1", "WrongArgument")
    assert "Did you mean 'trigger'?" in refused.message
    line.close()


def test_the_gateway_of_a_worker_is_stored_before_its_registration_is_answered(deployment: Deployment) -> None:
    """Otherwise the next scheduler would ask the gateway before. While nothing can be written the worker waits."""
    holder = sqlite3.connect(deployment.database, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    host = Line(deployment.socket)
    host.say(HostHello("etl@remote.p1", 1, "there", gateway="g1"))
    with deployment.client() as client:
        until(lambda: client.call("ping")["trouble"] is not None)
        assert not client.call("ping")["workers"]
        holder.execute("ROLLBACK")
        holder.close()
        assert host.hear_of(Welcome).refused is None
        assert deployment.gateways() == {"etl@remote": {"g1"}}
        assert [one["worker"] for one in client.call("ping")["workers"]] == ["etl@remote"]


def test_a_worker_has_its_former_gateway_until_it_confirms_the_new_one(deployment: Deployment) -> None:
    """Also for a scheduler that is started again meanwhile."""
    first, second = Line(deployment.socket), Line(deployment.socket)
    for line, gateway in ((first, "g1"), (second, "g2")):
        line.say(HostHello("etl@remote.p1", 1, "there", gateway=gateway))
        assert line.hear_of(Welcome).refused is None
    assert deployment.gateways() == {"etl@remote": {"g1", "g2"}}
    deployment.stop()
    deployment.start()
    again = Line(deployment.socket)
    again.say(HostHello("etl@remote.p1", 1, "there", gateway="g2"))
    assert again.hear_of(Welcome).refused is None
    assert deployment.gateways() == {"etl@remote": {"g1", "g2"}}
    again.say(Unlisted(()))
    until(lambda: deployment.gateways() == {"etl@remote": {"g2"}})


def test_a_host_that_outlives_the_scheduler(deployment: Deployment) -> None:
    """Its reports of the meantime are accepted, missing attempts are submitted, and dead ones are detected."""
    deployment.dag("d", task("ended"), task("gone", lost_attempts="repeat"), task("queued"))
    first = Line(deployment.socket)
    first.host()
    with deployment.client() as client:
        client.call("trigger", dag_id="d", run_id="r")
    works = {work.task_id: work for work in first.hear_of(Submit).workloads}
    for op, name in enumerate(("ended", "gone")):
        first.say(FromRunner(works[name].key, Start(op, name, 7)))
        assert first.hear_of(ToRunner).body == Accepted(op, name)
    deployment.stop()
    deployment.start()
    again = Line(deployment.socket)
    again.host()
    again.say(FromRunner(works["ended"].key, Report(9, Outcome.SUCCESS, nonce="ended")))
    result = [again.hear() for _ in range(3)]
    assert {type(message) for message in result} == {Reconcile, Submit, ToRunner}
    (asked,) = [m for m in result if isinstance(m, Reconcile)]
    assert set(asked.attempts) == {works["ended"].key, works["gone"].key}
    (submitted,) = [m for m in result if isinstance(m, Submit)]
    assert [w.key for w in submitted.workloads] == [works["queued"].key]
    assert [(type(m.body), m.body.op) for m in result if isinstance(m, ToRunner)] == [(Accepted, 9)]
    again.say(AttemptGone(works["gone"].key, "it is not here", "gone"))
    assert again.hear_of(Submit).workloads[0].key == (*works["gone"].key[:2], 2)
    again.say(FromRunner(works["gone"].key, Start(10, "gone", 7)))
    assert isinstance(again.hear_of(ToRunner).body, Refused)


def test_a_scheduler_that_lost_its_lease_closes_its_connections_without_a_statement(deployment: Deployment) -> None:
    """The database may hang: a statement would take many seconds, and the lease of the worker host would run out meanwhile."""
    host = Line(deployment.socket)
    host.host()
    until(lambda: deployment.job_states() == {"scheduler": "running", "h1": "running"})
    assert deployment.server is not None
    deployment.server.end_epoch()
    deployment.wait_for_end()
    while host.hear() is not None:
        pass
    assert deployment.job_states() == {"scheduler": "running", "h1": "running"}, "nothing was written"


def test_a_second_process_of_a_worker_host_replaces_the_first(deployment: Deployment) -> None:
    deployment.dag("d", task("a"))
    first, second = Line(deployment.socket), Line(deployment.socket)
    first.host("h1")
    with deployment.client() as client:
        client.call("trigger", dag_id="d", run_id="r")
        assert first.hear_of(Submit)
        assert second.host("h2", live=((77, 0, 1),)).refused is None
        assert first.hear() is None
        assert second.hear_of(Cancel).attempt == (77, 0, 1)
        assert second.hear_of(Submit).workloads[0].task_id == "a"
        assert [one["host"] for one in client.call("ping")["workers"]] == ["h2"]


def test_a_client_without_a_scheduler_gets_an_error(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="no live scheduler"), PlainClient(str(tmp_path / "none.sock"), "test") as client:
        client.call("ping")


def test_a_bug_does_not_end_the_scheduler(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug is shown as trouble while it lasts, and retries become less frequent."""
    server = deployment.server
    assert server is not None
    delays: list[int] = []
    real_process, later = server.scheduler.process, server.loop.call_later
    broken = True

    def process() -> None:
        if broken and not server.scheduler.paused:
            raise ZeroDivisionError("a bug")
        real_process()

    def call_later(delay: int, call: Callable[[], None]) -> Any:
        if call == server._recover:
            delays.append(delay)
            delay = 1
        return later(delay, call)

    monkeypatch.setattr(server.loop, "call_later", call_later)
    monkeypatch.setattr(server.scheduler, "process", process)
    with deployment.client() as client:
        while len(delays) < 9:
            trouble = client.call("ping")["trouble"]
        assert "ZeroDivisionError: a bug" in trouble
        broken = False
    assert delays[:9] == [RECOVER_EVERY << min(n, 6) for n in range(1, 10)]
    deployment.dag("d", task("a"))
    with deployment.client() as client:
        client.call("trigger", dag_id="d", run_id="r")
        assert client.call("ping")["trouble"] is None
    line = Line(deployment.socket)
    line.say(request("op-1", "tirgger", {}))
    refused = line.hear_of(CommandResult)
    assert (refused.op, refused.error) == ("op-1", "WrongArgument")
    assert "Did you mean 'trigger'?" in refused.message
    line.close()
