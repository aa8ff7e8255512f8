"""Logs in pieces: whole, in order, bounded, and from nowhere else."""

from __future__ import annotations

import base64
import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from tests.unit.api.conftest import PASSWORD, World
from tradewind.api import log_reading as reading
from tradewind.model.moments import MINUTE, SECOND
from tradewind.model.rows import AttemptEnd, AttemptStart, Batch, RunRow, RunWrite, TaskRow, TaskWrite
from tradewind.model.states import RunState, TaskState
from tradewind.storage.local_logs import LocalLogs
from tradewind.store.views import LogFile

URL = "/api/v2/dags/sales/dagRuns/r1/taskInstances/t0/logs/1"


class Attempts:
    """One task instance with attempts that start and end."""

    def __init__(self, world: World) -> None:
        self.world = world
        world.dag()
        self.run: RunRow = world.run()
        self.fence = 0
        self.state = TaskState.NONE
        self.folder = Path(world.config.logs) / "sales" / "r1"
        self.folder.mkdir(parents=True)

    def start(self, fence: int, try_number: int = 1) -> Path:
        at = self.world.clock.wall()
        starts = [AttemptStart(0, fence, try_number, "LocalExecutor", "h", "box", 1, f"n{fence}", at, at)]
        self._write(fence, TaskState.RUNNING, try_number, starts, [])
        return self.folder / f"t0~attempt={try_number}.{fence}.log"

    def end(self, outcome: str, state: TaskState, try_number: int = 1) -> None:
        at = self.world.clock.wall()
        ends = [AttemptEnd(0, self.fence, try_number, "LocalExecutor", at, at, outcome, None, 0, None)]
        self._write(self.fence, state, try_number, [], ends)

    def _write(self, fence: int, state: TaskState, try_number: int, starts: list[Any], ends: list[Any]) -> None:
        store = self.world.store
        now = store.run(self.run.id)
        assert now is not None
        row = TaskRow(0, state.code, fence, try_number, 3, False, 0, 0, 1, 1, 0, None, None)
        task = TaskWrite(row, self.state.code, self.fence)
        write = RunWrite(now.id, now.revision, RunState.RUNNING, 1, None, None, 0, [task], [], starts, ends)
        assert store.commit(Batch(0, 1, runs=[write])).stale == {}
        self.fence, self.state = fence, state


@pytest.fixture
def attempts(world: World) -> Attempts:
    return Attempts(world)


def line(text: str) -> str:
    return json.dumps({"timestamp": "2026-01-01T00:00:00Z", "level": "info", "event": text}) + "\n"


def ask(world: World, token: str | None = None, **more: Any) -> tuple[list[str], str | None]:
    query = {} if token is None else {"token": token}
    answer = world.get(URL, params={**query, **more})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    return [record["event"] for record in found["content"]], found["continuation_token"]


def test_a_running_log_is_followed_to_its_end(world: World, attempts: Attempts) -> None:
    path = attempts.start(1)
    assert ask(world) == ([], "1.0"), "nothing written yet"
    with path.open("w", encoding="utf-8") as log:
        log.write(line("one") + line("two") + '{"event": "ha')
        log.flush()
        events, token = ask(world)
        assert events == ["one", "two"], "half a record waits for its other half"
        log.write('lf"}\n')
        log.flush()
        events, token = ask(world, token)
        assert events == ["half"]
        assert ask(world, token) == ([], token)
        attempts.end("success", TaskState.SUCCESS)
        log.write("the last words")
        log.flush()
        assert ask(world, token) == ([], token), "it ended just now: more may come"
        world.clock.advance(MINUTE)
        assert ask(world, token) == (["the last words"], None)


def test_attempts_of_one_try_are_read_as_one_log(world: World, attempts: Attempts) -> None:
    for fence in (1, 2, 3):
        attempts.start(fence).write_text(line(f"attempt {fence}"))
        attempts.end(*(("success", TaskState.SUCCESS) if fence == 3 else ("reschedule", TaskState.UP_FOR_RESCHEDULE)))
    world.clock.advance(MINUTE)
    assert ask(world) == (["attempt 1", "attempt 2", "attempt 3"], None)
    assert ask(world, "2.0") == (["attempt 2", "attempt 3"], None)
    assert ask(world, "9.0") == ([], None)


@pytest.mark.parametrize(("outcome", "state"), [("deferred", TaskState.DEFERRED), ("reschedule", TaskState.UP_FOR_RESCHEDULE)])
def test_a_log_is_followed_through_a_deferral(world: World, attempts: Attempts, outcome: str, state: TaskState) -> None:
    """While the try is unfinished there is a token. A trigger writes into the file of the ended attempt."""
    path = attempts.start(1)
    path.write_text(line("before"))
    attempts.end(outcome, state)
    world.clock.advance(MINUTE)
    events, token = ask(world)
    assert (events, token) == (["before"], f"1.{path.stat().st_size}")
    with path.open("a") as log:
        log.write(line("the trigger looks"))
    events, token = ask(world, token)
    assert events == ["the trigger looks"]
    with path.open("a") as log:
        log.write(line("it came"))
    attempts.start(2).write_text(line("after"))
    attempts.end("success", TaskState.SUCCESS)
    world.clock.advance(MINUTE)
    assert ask(world, token) == (["it came", "after"], None)
    assert ask(world) == (["before", "the trigger looks", "it came", "after"], None)


def test_a_try_that_waits_for_its_retry_is_complete(world: World, attempts: Attempts) -> None:
    attempts.start(1).write_text(line("it failed"))
    attempts.end("failed", TaskState.UP_FOR_RETRY)
    world.clock.advance(MINUTE)
    assert ask(world) == (["it failed"], None)


def test_pages_of_any_size_add_up_to_the_whole_log(world: World, attempts: Attempts, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"line {n} " + "x" * (n % 90) for n in range(300)]
    attempts.start(1).write_text("".join(map(line, texts[:150])))
    attempts.end("reschedule", TaskState.UP_FOR_RESCHEDULE)
    attempts.start(2).write_text("".join(map(line, texts[150:])))
    attempts.end("success", TaskState.SUCCESS)
    world.clock.advance(MINUTE)
    for size in (200, 333, 1024, 5000):
        monkeypatch.setattr(reading, "PAGE_BYTES", size)
        seen: list[str] = []
        token: str | None = None
        for _ in range(1000):
            events, token = ask(world, token)
            seen += events
            if token is None:
                break
        assert seen == texts, size
    assert ask(world, full_content=True)[0] == texts


def test_ndjson_streams_everything_and_returns_a_token(world: World, attempts: Attempts) -> None:
    path = attempts.start(1)
    path.write_text(line("one") + "plain text\n" + line("three") + "unfinis")
    answer = world.get(URL, headers={"Accept": "application/x-ndjson"})
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert [json.loads(text)["event"] for text in answer.text.splitlines()] == ["one", "plain text", "three"]
    token = answer.headers["airflow-continuation-token"]
    with path.open("a") as log:
        log.write("hed\n")
    again = world.get(URL, params={"token": token}, headers={"Accept": "application/x-ndjson"})
    assert [json.loads(text)["event"] for text in again.text.splitlines()] == ["unfinished"]


@pytest.mark.parametrize(
    ("raw", "event"),
    [
        (b"plain", "plain"),
        (b"\xff\xfe bytes", "\ufffd\ufffd bytes"),
        (b"[1, 2]", "[1, 2]"),
        (b'"text"', '"text"'),
        (b'{"event": 7}', "7"),
        (b'{"no": "event"}', ""),
        (b'{"event": "x", "\xff": 1}', '{"event": "x", "\ufffd": 1}'),
        (b"{" * 5000, "{" * 5000),
        (b"null", "null"),
        (b"{", f"{{ {reading.CUT_OFF}"),
        (b'{"timestamp":"2026-01-01T0', f'{{"timestamp":"2026-01-01T0 {reading.CUT_OFF}'),
    ],
)
def test_every_line_becomes_a_record(raw: bytes, event: str) -> None:
    assert reading.record(raw)["event"] == event


def test_a_long_line_is_split_and_a_large_log_takes_little_memory(tmp_path: Path) -> None:
    with (tmp_path / "big.log").open("wb") as log:
        for _ in range(30):
            log.write(b"x" * 1_000_000)
        log.write(b"\n" + line("end").encode() * 100_000)
    files = [LogFile(1, "big.log", 0)]
    tracemalloc.start()
    found = reading.plan(LocalLogs(str(tmp_path)), files, None, MINUTE, None)
    size = sum(len(block) for block in reading.ndjson(LocalLogs(str(tmp_path)), found.pieces))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size > 35_000_000
    assert peak < 12_000_000
    first = reading.plan(LocalLogs(str(tmp_path)), files, None, MINUTE)
    assert first.next_position == (1, reading.PAGE_BYTES)


@pytest.mark.parametrize("token", ["x", "1", "1.", ".1", "-1.0", "1.0.0", "²³.0", "1" * 50 + ".0", "../x"])
def test_an_invalid_token_is_400(world: World, attempts: Attempts, token: str) -> None:
    attempts.start(1)
    answer = world.get(URL, params={"token": token})
    assert (answer.status_code, "continuation token" in answer.json()["detail"]) == (400, True)


def test_a_position_beyond_the_end_reads_nothing(world: World, attempts: Attempts) -> None:
    attempts.start(1).write_text(line("one"))
    attempts.end("success", TaskState.SUCCESS)
    world.clock.advance(3 * SECOND)
    assert ask(world, "1.99999999999") == ([], None)


def test_a_try_that_does_not_exist_is_404(world: World, attempts: Attempts) -> None:
    attempts.start(1)
    answer = world.get(URL.replace("logs/1", "logs/2"))
    assert (answer.status_code, "its tries: 1" in answer.json()["detail"]) == (404, True)
    assert world.get(URL.replace("logs/1", "logs/0")).status_code == 422


def test_links_and_pipes_in_the_folder_are_not_followed(world: World, attempts: Attempts, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret\n")
    path = attempts.start(1)
    attempts.end("failed", TaskState.FAILED)
    world.clock.advance(MINUTE)
    path.symlink_to(secret)
    nothing = ask(world)
    assert "There is no log file of this attempt" in nothing[0][0]
    path.unlink()
    os.mkfifo(path)
    assert ask(world) == nothing
    path.unlink()
    attempts.folder.rmdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / path.name).write_text("secret\n")
    attempts.folder.symlink_to(tmp_path / "elsewhere")
    assert ask(world) == nothing


def test_a_log_that_an_earlier_release_wrote_is_still_read(world: World, attempts: Attempts) -> None:
    attempts.start(1)
    attempts.end("success", TaskState.SUCCESS)
    world.clock.advance(MINUTE)
    former = attempts.folder / "t0" / "attempt=1.1.log"
    former.parent.mkdir()
    former.write_text(line("before the upgrade"))
    assert ask(world) == (["before the upgrade"], None)


def test_a_missing_log_is_explained(world: World, attempts: Attempts) -> None:
    attempts.start(1)
    assert ask(world)[0] == [], "it has just begun"
    attempts.folder.rmdir()
    attempts.folder.parent.rmdir()
    Path(world.config.logs).rmdir()
    attempts.end("failed", TaskState.FAILED)
    world.clock.advance(MINUTE)
    (why,) = ask(world)[0]
    assert "There is no log file of this attempt" in why
    assert "sales/r1/t0~attempt=1.1.log" in why
    streamed = world.get(URL, headers={"Accept": "application/x-ndjson"}).text
    assert [json.loads(text)["event"] for text in streamed.splitlines()] == [why]


def test_a_log_that_a_full_disk_left_empty_is_explained(world: World, attempts: Attempts) -> None:
    attempts.start(1).write_text("")
    assert ask(world)[0] == [], "it may be written in a moment"
    attempts.end("success", TaskState.SUCCESS)
    world.clock.advance(MINUTE)
    (why,) = ask(world)[0]
    assert why.startswith("The log is empty, because its worker host could not write it")
    assert "for example a full disk" in why


@pytest.mark.parametrize("ended", [False, True])
def test_an_unwritable_log_folder_is_the_explanation(
    world: World, attempts: Attempts, ended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    attempts.start(1)
    if ended:
        attempts.end("success", TaskState.SUCCESS)
        world.clock.advance(MINUTE)
    (why,) = ask(world)[0]
    assert why.startswith(f"There is no log: the log folder {world.config.logs} cannot be written")


def test_ids_cannot_lead_out_of_the_folder(world: World) -> None:
    for dag in ("..%2F..%2Fetc", "%2e%2e", ".."):
        answer = world.get(f"/api/v2/dags/{dag}/dagRuns/r/taskInstances/t/logs/1")
        assert answer.status_code == 404


def test_a_success_without_output_shows_its_last_line(world: World, attempts: Attempts) -> None:
    attempts.start(1)
    attempts.end("success", TaskState.SUCCESS)
    assert ask(world)[0] == [], "its last lines may still come"
    world.clock.advance(MINUTE)
    (sentence,), token = ask(world)
    assert sentence.startswith("Marking task as SUCCESS. There is no log file")
    assert token is None


def test_a_client_of_airflow_2_gets_the_log(attempts: Attempts) -> None:
    """The request that is translated to `/api/v2` must not ask again and again whether the client has gone."""
    path = attempts.start(1)
    path.write_text('{"timestamp": "2026-01-01T00:00:00Z", "level": "info", "event": "hello"}\n')
    attempts.end("success", TaskState.SUCCESS)
    basic = {"Authorization": "Basic " + base64.b64encode(f"admin:{PASSWORD}".encode()).decode()}
    url = URL.replace("/api/v2/", "/api/v1/")
    answer = attempts.world.bare("GET", url, headers={**basic, "Accept": "application/json"})
    assert "hello" in answer.json()["content"]
    assert answer.json()["continuation_token"] == ""
    plain = attempts.world.bare("GET", url, headers={**basic, "Accept": "text/plain"})
    assert plain.headers["content-type"].startswith("text/plain")
    assert "hello" in plain.text
