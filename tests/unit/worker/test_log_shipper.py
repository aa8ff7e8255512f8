"""The logs of a remote worker reach its gateway completely, and are deleted afterwards."""

from __future__ import annotations

from pathlib import Path

from tradewind.gateway.log_store import LogStore
from tradewind.platform.clock import ManualClock
from tradewind.wire.gateway import LogPiece, LogStored
from tradewind.worker.log_shipper import QUIET, RESEND_AFTER, LogShipper

PATH = "etl/run1/load~attempt=1.1.log"


class World:
    """A worker's log folder, a gateway's, and the messages between them."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.here, self.there = folder / "worker", folder / "gateway"
        self.pieces: list[LogPiece] = []
        self.shipper = LogShipper(str(self.here), "p1", self.pieces.append, self.clock)
        self.store = LogStore(str(self.there))

    def write(self, data: bytes) -> None:
        (self.here / PATH).parent.mkdir(parents=True, exist_ok=True)
        with (self.here / PATH).open("ab") as file:
            file.write(data)

    def deliver(self, answers: bool = True) -> list[LogStored]:
        """Let the gateway store what was sent. Without `answers` the worker does not learn of it."""
        given = [self.store.store("w", piece) for piece in self.pieces]
        self.pieces.clear()
        for answer in given if answers else ():
            self.shipper.stored(answer)
        return given

    @property
    def stored(self) -> bytes:
        return (self.there / PATH).read_bytes()


def test_what_is_written_is_sent_while_the_task_runs(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write(b"one\n")
    world.shipper.ship({PATH})
    world.deliver()
    world.write(b"two\n")
    world.shipper.ship({PATH})
    world.deliver()
    assert world.stored == b"one\ntwo\n"
    assert not world.shipper.is_behind


def test_a_stored_log_is_deleted_when_nobody_writes_to_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write(b"one\n")
    world.shipper.ship({PATH})
    world.deliver()
    world.clock.advance(QUIET + 1)
    world.shipper.ship({PATH})
    assert (world.here / PATH).exists()
    world.shipper.ship(set())
    assert not (world.here / PATH).exists()
    world.write(b"last\n")
    world.shipper.ship(set())
    world.deliver()
    assert world.stored == b"one\nlast\n"


def test_a_lost_answer_stores_nothing_twice(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write(b"one\n")
    world.shipper.ship({PATH})
    world.deliver(answers=False)
    world.write(b"two\n")
    world.clock.advance(RESEND_AFTER + 1)
    world.shipper.ship({PATH})
    world.deliver()
    assert world.stored == b"one\ntwo\n"


def test_a_lost_piece_is_sent_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write(b"one\n")
    world.shipper.ship({PATH})
    world.pieces.clear()
    world.shipper.connected()
    world.shipper.ship({PATH})
    world.deliver()
    assert world.stored == b"one\n"


def test_what_an_earlier_process_left_is_sent(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write(b"one\n")
    assert world.shipper.is_behind
    world.shipper.ship(set())
    world.deliver()
    assert world.stored == b"one\n"
