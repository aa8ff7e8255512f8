"""The output of `standalone`: a live table of runs on a terminal, otherwise a line for each run that starts or ends.

An error in the table must not stop the supervisor: the caller then switches to plain lines.
"""

from __future__ import annotations

import os
import sys
import time
from collections import OrderedDict
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from tradewind.cli.table_layout import GAP, fit
from tradewind.model.errors import TradewindError
from tradewind.model.states import RunState
from tradewind.platform.loop import Loop
from tradewind.wire.messages import Notice

if TYPE_CHECKING:
    from tradewind.model.rows import RunRow
    from tradewind.store.port import Reader

REDRAW_US = 500_000
"""Microseconds between two drawings of the table: at most two a second, and only after changes."""
ROWS = 20
_STARTS_KEPT = 10_000
_FINISHED = ("success", "failed")
GONE = "deleted"
"""The state of a deleted run in a notice of `missed_notices`."""

RunKey = tuple[str, str]
"""DAG id and run id."""


def clock_text(micros: int) -> str:
    """Hours, minutes and seconds in local time."""
    return time.strftime("%H:%M:%S", time.localtime(micros / 1e6))


def duration_text(micros: int) -> str:
    """`850 ms`, `12.3 s`, `4 min 5 s`, `2 h 3 min`."""
    seconds = micros / 1e6
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, left = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {left} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


class RunReader(Protocol):
    """The part of the store that `missed_notices` reads."""

    def find_run(self, dag_id: str, run_id: str) -> RunRow | None: ...
    def active_runs(self, dag_id: str | None = None) -> list[RunRow]: ...


def missed_notices(store: RunReader, open_runs: Collection[RunKey]) -> list[Notice]:
    """Notices for changes that happened while no scheduler was connected.

    Args:
        open_runs: the runs that the screen shows as queued or running.

    Returns:
        One notice with the present state of each of these runs, and of each other queued or running run. The state of a deleted run
        is `GONE`.
    """
    rows = {key: store.find_run(*key) for key in open_runs}
    rows.update({(row.dag_id, row.run_id): row for row in store.active_runs()})
    return [Notice("run", *key, GONE if row is None else row.state.value, **_when(row)) for key, row in rows.items()]


def _when(row: RunRow | None) -> dict[str, Any]:
    if row is None:
        return {}
    moment = row.started_at if row.state is RunState.RUNNING else row.ended_at
    return {"at": row.queued_at if moment is None else moment, "text": row.reason or ""}


class Screen(Protocol):
    """The output of `standalone`."""

    def start(self) -> None: ...

    def notice(self, notice: Notice) -> None:
        """Show a notice of the scheduler. The same notice may come twice."""
        ...

    def open_runs(self) -> list[RunKey]:
        """The runs that are shown as queued or running."""
        ...

    def print_line(self, line: str) -> None:
        """Print a line."""
        ...

    def stop(self) -> None: ...


class Lines:
    """Prints a line when a run starts and when it ends."""

    def __init__(self) -> None:
        self._started: OrderedDict[RunKey, int] = OrderedDict()

    def start(self) -> None:
        pass

    def open_runs(self) -> list[RunKey]:
        return list(self._started)

    def notice(self, notice: Notice) -> None:
        if notice.kind != "run":
            return
        key = (notice.dag_id, notice.run_id)
        if notice.state == GONE:
            self._started.pop(key, None)
        elif notice.state == "running":
            if key in self._started:
                return
            self._started[key] = notice.at
            while len(self._started) > _STARTS_KEPT:
                self._started.popitem(last=False)
            self.print_line(f"{clock_text(notice.at)} started  {notice.dag_id} {notice.run_id}")
        elif notice.state in _FINISHED:
            began = self._started.pop(key, None)
            took = "" if began is None else f" in {duration_text(notice.at - began)}"
            why = f": {notice.text}" if notice.state == "failed" and notice.text else ""
            self.print_line(f"{clock_text(notice.at)} {notice.state:<8} {notice.dag_id} {notice.run_id}{took}{why}")

    def print_line(self, line: str) -> None:
        try:
            print(line, flush=True)
        except OSError:
            # the reader of the output has closed it; standalone continues
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115

    def stop(self) -> None:
        pass


class _RunRow(msgspec.Struct, eq=False):
    """One row of the table."""

    dag_id: str
    run_id: str
    state: str
    queued: int
    started: int | None = None
    ended: int | None = None
    done: int = 0
    total: int | None = None


class Table:
    """A table of the latest runs, which is redrawn after changes.

    Args:
        database: path or URL of the database, from which the progress of running runs is read.
    """

    def __init__(self, loop: Loop, database: str) -> None:
        from rich.console import Console  # lazy import: takes 60 ms and 10 MB, only needed on a terminal
        from rich.live import Live

        self._loop = loop
        self._database = database
        self._store: Reader | None = None
        self._rows: OrderedDict[RunKey, _RunRow] = OrderedDict()
        self._counts = {"success": 0, "failed": 0}
        self._drawing = False
        self._console = Console()
        self._live = Live(console=self._console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)

    def start(self) -> None:
        self._live.start()
        self._draw()

    def stop(self) -> None:
        self._live.update(self._table(), refresh=True)
        self._live.stop()
        if self._store is not None:
            self._store.close()

    def print_line(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False)

    def open_runs(self) -> list[RunKey]:
        return [key for key, row in self._rows.items() if row.state not in _FINISHED]

    def notice(self, notice: Notice) -> None:
        if notice.kind != "run":
            return
        key = (notice.dag_id, notice.run_id)
        row = self._rows.get(key)
        if notice.state == GONE:
            self._rows.pop(key, None)
            self._draw_soon()
            return
        if row is None:
            row = self._rows[key] = _RunRow(notice.dag_id, notice.run_id, "", notice.at)
            self._drop_old_rows()
        before, row.state = row.state, notice.state
        if notice.state == "running" and before != "running":
            row.started, row.ended = notice.at, None
            self._rows.move_to_end(key)
        elif notice.state in _FINISHED:
            row.ended = notice.at
            self._counts[notice.state] += before != notice.state
            self._progress(row)
        self._draw_soon()

    def _drop_old_rows(self) -> None:
        """Drop rows that are not shown any more; keep unfinished runs and the latest finished ones."""
        if len(self._rows) > 50 * ROWS:
            ended = [key for key, row in self._rows.items() if row.ended is not None or row.started is None]
            for key in ended[: -2 * ROWS]:
                del self._rows[key]

    def _draw_soon(self) -> None:
        if not self._drawing:
            self._drawing = True
            self._loop.call_later(REDRAW_US, self._draw)

    def _draw(self) -> None:
        self._drawing = False
        shown = self._rows_to_show()
        for row in shown:
            if row.state == "running":
                self._progress(row)
        self._live.update(self._table(), refresh=True)
        if any(row.state == "running" for row in shown):
            self._drawing = True
            self._loop.call_later(2 * REDRAW_US, self._draw)

    def _rows_to_show(self) -> list[_RunRow]:
        """The rows to show: running runs first, then the latest finished runs."""
        room = max(3, min(ROWS, self._console.size.height - 6))
        rows = list(self._rows.values())
        running = [row for row in rows if row.state == "running"][-room:]
        ended = sorted((row for row in rows if row.ended is not None), key=lambda row: row.ended or 0)
        left = room - len(running)
        return [*running, *reversed(ended[-left:] if left else [])]

    def _progress(self, row: _RunRow) -> None:
        """Read the numbers of finished and of all tasks of a run. If the database cannot be read they stay as they are."""
        from tradewind.store.factory import open_reader  # lazy import: only the table needs the database

        try:
            if self._store is None:
                self._store = open_reader(self._database, busy_timeout_ms=50)
            finished = ["success", "failed", "skipped", "upstream_failed", "removed"]
            found = self._store.list_task_instances(row.dag_id, row.run_id, states=finished, limit=1)
            row.done = found.total if found.total is not None else row.done
            if row.total is None:
                row.total = self._store.list_task_instances(row.dag_id, row.run_id, limit=1).total
        except TradewindError:
            pass  # the run is deleted, or the database is busy: the next drawing tries again

    def _table(self) -> Any:
        from rich.box import SIMPLE_HEAD  # lazy import: as above
        from rich.cells import cell_len
        from rich.table import Table as RichTable
        from rich.text import Text

        waiting = sum(1 for row in self._rows.values() if row.state == "queued")
        caption = f"{self._counts['success']} succeeded, {self._counts['failed']} failed, {waiting} waiting"
        table = RichTable(title="Runs", title_justify="left", caption=caption, caption_justify="left", expand=False)
        table.box, table.show_edge, table.pad_edge, table.padding = SIMPLE_HEAD, False, False, (0, GAP - 1, 0, 0)
        chosen = self._rows_to_show()
        shown = fit(list(_HEADS), [self._cells(row) for row in chosen], self._console.width, measure=cell_len)
        for name in shown.columns:
            table.add_column(_HEADS[name], no_wrap=True, justify="right" if name in ("tasks", "took") else "left")
        for row, cells in zip(chosen, shown.cells, strict=True):
            table.add_row(*(Text(cell, style=_STYLES.get(row.state, "") if cell == row.state else "") for cell in cells))
        return table

    def _cells(self, row: _RunRow) -> list[str]:
        """The cells of a row, in the order of `_HEADS`."""
        took = (row.ended or self._loop.clock.wall()) - row.started if row.started is not None else None
        return [
            row.dag_id,
            row.run_id,
            row.state,
            f"{row.done}/{row.total}" if row.total else "",
            clock_text(row.started) if row.started is not None else "",
            duration_text(took) if took is not None else "",
        ]


_HEADS = {"dag_id": "DAG", "run_id": "Run", "state": "State", "tasks": "Tasks", "started": "Started", "took": "Took"}
_STYLES = {"running": "green", "success": "dim green", "failed": "bold red", "queued": "dim"}
