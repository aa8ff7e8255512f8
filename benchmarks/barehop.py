"""The bare hop: the minimum cost of a durable chain with one process per task on this machine, in one small loop.

For each task: a dispatch commit, a fork from a template of the same size as Tradewind's, an accept commit, user code, a report
commit. SQLite in WAL with synchronous=FULL, rows as wide as Tradewind's. No scheduling rules; the only messages between
processes are two bytes over a pipe.
"""

from __future__ import annotations

import os
import sqlite3
import time

_TABLES = """
CREATE TABLE run (id INTEGER PRIMARY KEY, revision INTEGER, state INTEGER, reason TEXT, seq INTEGER);
CREATE TABLE ti (run INTEGER, slot INTEGER, task_id TEXT, state INTEGER, fence INTEGER, try INTEGER, queued INTEGER,
  started INTEGER, ended INTEGER, PRIMARY KEY (run, slot)) WITHOUT ROWID;
CREATE TABLE journal (run INTEGER, seq INTEGER, slot INTEGER, fence INTEGER, before INTEGER, after INTEGER, at INTEGER,
  cause TEXT, PRIMARY KEY (run, seq)) WITHOUT ROWID;
CREATE TABLE attempt (run INTEGER, slot INTEGER, fence INTEGER, host TEXT, hostname TEXT, pid INTEGER, nonce TEXT,
  started INTEGER, ended INTEGER, outcome TEXT, PRIMARY KEY (run, slot, fence)) WITHOUT ROWID;
"""
_TI = "UPDATE ti SET state = ?, fence = 1, queued = ?, started = ?, ended = ? WHERE run = 1 AND slot = ? AND state = ?"
_CAUSES = {1: "all upstream tasks are done", 2: "admitted", 3: "accepted a start", 4: "it succeeded"}


def chain(path: str, hops: int) -> dict[str, list[float]]:
    """Milliseconds from the end of the code of one task to the start of the code of the next task, and of each part."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.executescript(_TABLES)
    db.execute("INSERT INTO run VALUES (1, 0, 1, NULL, 0)")
    db.executemany("INSERT INTO ti VALUES (1, ?, ?, 0, 0, 0, 0, 0, 0)", [(i, f"t{i}") for i in range(hops)])
    seq = 0

    def commit(slot: int, states: tuple[int, ...], more: tuple[object, ...] = ()) -> None:
        nonlocal seq
        now = time.time_ns() // 1000
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE run SET revision = revision + 1, seq = ? WHERE id = 1", (seq + len(states),))
        for state in states:
            seq += 1
            db.execute(_TI, (state, now, now, now, slot, state - 1))
            db.execute(
                "INSERT INTO journal VALUES (1, ?, ?, 1, ?, ?, ?, ?)", (seq, slot, state - 1, state, now, _CAUSES[state])
            )
        if more:
            db.execute("INSERT INTO attempt VALUES (1, ?, 1, ?, ?, ?, ?, ?, NULL, NULL)", more)
        elif states == (4,):
            db.execute(
                "UPDATE attempt SET ended = ?, outcome = 'success' WHERE run = 1 AND slot = ? AND fence = 1", (now, slot)
            )
        db.execute("COMMIT")

    found: dict[str, list[float]] = {"hop": [], "dispatch": [], "accept": [], "report": []}
    ended = 0
    for slot in range(hops):
        dispatched = time.monotonic_ns()
        commit(slot, (1, 2))
        forking = time.monotonic_ns()
        (ask, asked), (go, may_go) = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            os.write(asked, b"s")
            os.read(go, 1)
            started = time.monotonic_ns()
            _fib(10)
            os.write(asked, started.to_bytes(8, "big") + time.monotonic_ns().to_bytes(8, "big"))
            os._exit(0)
        os.read(ask, 1)
        accepting = time.monotonic_ns()
        commit(slot, (3,), (slot, "0123456789abcdef", "localhost", pid, "0123456789abcdef", accepting // 1000))
        accepted = time.monotonic_ns()
        os.write(may_go, b"g")
        words = os.read(ask, 16)
        reporting = time.monotonic_ns()
        commit(slot, (4,))
        reported = time.monotonic_ns()
        if ended:
            found["hop"].append((int.from_bytes(words[:8], "big") - ended) / 1e6)
        ended = int.from_bytes(words[8:], "big")
        found["dispatch"].append((forking - dispatched) / 1e6)
        found["accept"].append((accepted - accepting) / 1e6)
        found["report"].append((reported - reporting) / 1e6)
        for end in (ask, asked, go, may_go):
            os.close(end)
        os.waitpid(pid, os.WNOHANG)
    return found


def _fib(n: int) -> int:
    return n if n < 2 else _fib(n - 1) + _fib(n - 2)
