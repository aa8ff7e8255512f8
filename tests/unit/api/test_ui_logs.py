"""Logs in pieces by byte offset."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.api.conftest import World
from tests.unit.api.page_world import PAGE, register
from tradewind.api import log_pieces
from tradewind.api.log_pieces import ErrorSearch, LogPart, read_before, read_from, size_of
from tradewind.model.definition import DagDefinition, TaskDefinition
from tradewind.model.moments import MINUTE
from tradewind.model.states import TaskState
from tradewind.storage.local_logs import LocalLogs
from tradewind.wire.log_paths import log_path

LOG = f"{PAGE}/dags/sales/runs/r1/tasks/t/tries/1/log"


def line(text: str, level: str = "info") -> bytes:
    return (
        json.dumps({"timestamp": "2026-01-01T00:00:00Z", "level": level, "event": text}, separators=(",", ":")).encode() + b"\n"
    )


class Logs:
    """Log files in a folder, as the parts of one log."""

    def __init__(self, folder: Path, *files: bytes, grows: bool = False) -> None:
        self.storage = LocalLogs(str(folder))
        self.parts: list[LogPart] = []
        for number, data in enumerate(files):
            (folder / f"{number}.log").write_bytes(data)
            self.parts.append(LogPart(f"{number}.log", size_of(self.parts), len(data), grows and number == len(files) - 1))


def texts(piece: log_pieces.LogPiece) -> list[str]:
    return [one["event"] for one in piece.records]


@pytest.mark.parametrize("limit", [1, 50, 100, 333, 5000])
def test_all_pieces_together_are_the_log(tmp_path: Path, limit: int) -> None:
    lines = [line("x" * (i % 40)) for i in range(30)]
    logs = Logs(tmp_path, b"".join(lines[:10]), b"", b"".join(lines[10:]) + b"no line end")
    wanted = ["x" * (i % 40) for i in range(30)] + ["no line end"]
    if limit >= 100:
        forward: list[str] = []
        place = 0
        while place < size_of(logs.parts):
            piece = read_from(logs.storage, logs.parts, place, limit)
            assert piece.end > piece.start == place
            forward += texts(piece)
            place = piece.end
        assert forward == wanted
    backward: list[str] = []
    place = size_of(logs.parts)
    while place > 0:
        piece = read_before(logs.storage, logs.parts, place, max(limit, 100))
        assert piece.start < piece.end == place
        backward = texts(piece) + backward
        place = piece.start
    assert backward == wanted


def test_an_offset_names_its_line(tmp_path: Path) -> None:
    logs = Logs(tmp_path, line("a") + line("b"), line("c") + line("d"))
    piece = read_from(logs.storage, logs.parts, 0, 10_000)
    for offset, text in zip(piece.offsets, "abcd", strict=True):
        assert texts(read_from(logs.storage, logs.parts, offset, 10_000))[0] == text
    middle = piece.offsets[1] + 3
    assert texts(read_from(logs.storage, logs.parts, middle, 10_000)) == ["c", "d"], "an offset inside a line: the next one"
    assert texts(read_from(logs.storage, logs.parts, 10**9, 100)) == []


def test_a_line_that_is_being_written_waits_for_its_end(tmp_path: Path) -> None:
    logs = Logs(tmp_path, line("a") + b'{"event": "hal', grows=True)
    piece = read_from(logs.storage, logs.parts, 0, 10_000)
    assert (texts(piece), piece.end) == (["a"], len(line("a")))
    assert read_from(logs.storage, logs.parts, piece.end, 10_000).end == piece.end


def test_a_line_longer_than_a_piece_is_split(tmp_path: Path) -> None:
    logs = Logs(tmp_path, b"y" * (3 * log_pieces.PIECE_MAX) + b"\n" + line("end"))
    place, steps = 0, 0
    while place < size_of(logs.parts):
        place = read_from(logs.storage, logs.parts, place, log_pieces.PIECE_MAX).end
        steps += 1
        assert steps < 10


def test_a_piece_of_a_large_log_reads_only_the_piece(tmp_path: Path) -> None:
    logs = Logs(tmp_path, b"")
    with (tmp_path / "0.log").open("wb") as file:
        file.truncate(10**12)  # a sparse file: reading all of it would take minutes
    parts = [LogPart("0.log", 0, 10**12, False)]
    piece = read_from(logs.storage, parts, 5 * 10**11, 1000)
    assert piece.end - piece.start <= log_pieces.PIECE_MAX


def test_the_first_error_is_searched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_pieces, "SEARCH_BLOCK", 200)
    monkeypatch.setattr(log_pieces, "SEARCH_MAX", 1000)
    before = b"".join(line(f'"level":"error" {i}') for i in range(40))
    logs = Logs(tmp_path, before, line("fine") + line("bad", "error") + line("worse", "critical"))
    search = ErrorSearch()
    seen = 0
    while not (found := search.first(logs.storage, logs.parts))[1]:
        seen += 1
        assert found[0] is None
        assert seen < 20
    assert seen >= 3, "each call searches a bounded part"
    assert found[0] == len(before) + len(line("fine")), "a text that looks like an error is not one"
    (tmp_path / "0.log").unlink()
    assert search.first(logs.storage, logs.parts) == found, "known parts are not read again"


# --- the route -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def started(world: World) -> World:
    register(world, DagDefinition("sales", tasks=(TaskDefinition("t"),)))
    run = world.run("sales", "r1")
    engine = world.store.engine
    with engine.transaction():
        engine.run("UPDATE task_instance SET state = ?, fence = 1, try_number = 1", (TaskState.RUNNING.code,))
        engine.run(
            "INSERT INTO attempt (run, slot, fence, try_number, executor, started_at) VALUES (?, 0, 1, 1, 'local', ?)",
            (run.id, world.clock.wall()),
        )
    return world


def write(world: World, data: bytes) -> None:
    path = world.home / "logs" / log_path("sales", "r1", "t", -1, 1, 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(data)


def end(world: World) -> None:
    with world.store.engine.transaction():
        world.store.engine.run("UPDATE attempt SET ended_at = ?, outcome = 'failed'", (world.clock.wall(),))
    world.clock.advance(MINUTE)


def test_a_log_has_columns(started: World) -> None:
    write(started, line("\x1b[31mred\x1b[0m <script>") + b"plain\n")
    found = started.json(LOG)
    assert found["texts"] == ["\x1b[31mred\x1b[0m <script>", "plain"]
    assert (found["levels"], found["times"]) == (["info", None], ["2026-01-01T00:00:00Z", None])
    assert (found["grows"], found["end"], found["first_error"]) == (True, found["size"], None)
    end(started)
    assert started.json(LOG)["grows"] is False
    assert started.get(LOG, headers={"Accept": "text/html"}).headers["content-type"] == "application/json"


def test_a_failed_try_opens_at_its_first_error(started: World) -> None:
    write(started, line("x" * 100) * 500 + line("KeyError: 'sku'", "error") + line("after"))
    end(started)
    found: Any = started.json(f"{LOG}?at=error&limit=8000")
    assert found["texts"][-2:] == ["KeyError: 'sku'", "after"]
    assert found["first_error"] == found["offsets"][-2]
    assert 0 < found["start"] < found["first_error"]
    last = started.json(f"{LOG}?at=end&limit=100")
    assert last["texts"] == ["after"]
    assert started.json(f"{LOG}?at=before&offset={last['start']}&limit=300")["texts"][-1] == "KeyError: 'sku'"


def test_a_log_that_does_not_exist_says_why(started: World) -> None:
    found = started.json(LOG)
    assert (found["texts"], found["size"], found["notice"]) == ([], 0, None), "the task has just started"
    end(started)
    assert "no log file" in started.json(LOG)["notice"]
    assert started.get(LOG.replace("/1/", "/7/")).status_code == 404


def test_a_request_waits_until_the_log_grows(started: World) -> None:
    write(started, line("first"))
    place = started.json(LOG)["end"]

    async def follow() -> Any:
        headers = {"Authorization": f"Bearer {started.token()}"}
        waiting = asyncio.ensure_future(started.http.get(f"{LOG}?offset={place}&wait=20", headers=headers))
        await asyncio.sleep(0)
        write(started, line("second"))
        return (await asyncio.wait_for(waiting, 15)).json()

    assert started.runner.run(follow())["texts"] == ["second"]
    end(started)
    done = started.json(f"{LOG}?offset={started.json(LOG)['end']}&wait=20")
    assert (done["texts"], done["grows"]) == ([], False), "an ended try is not waited for"
