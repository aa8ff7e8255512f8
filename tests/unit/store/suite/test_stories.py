"""Random sequences of operations, some inside transactions that are rolled back.

An operation that raises leaves everything as it was, and so does a transaction that is rolled back. In the end every task instance
has the state that its journal adds up to, and a copy of the store contains the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.store.suite.build import NOW, S, broken, definition, due, new_run, notes, parsed, rows, share, xcom
from tradewind.model.errors import TradewindError
from tradewind.model.moments import DAY
from tradewind.model.rows import (
    AttemptEnd,
    AttemptStart,
    Batch,
    ConnectionRow,
    PoolRow,
    RunWrite,
    VariableRow,
)
from tradewind.model.states import RunState, RunType, TaskState
from tradewind.store.memory import MemoryStore

DAGS, FILES, NAMES = ["a", "b"], ["one.py", "two.py"], ["x", "y"]
RUNS = range(1, 8)
DAYS = st.none() | st.integers(0, 3)
MOMENTS = st.integers(0, 5).map(lambda day: NOW + day * DAY)


class Op(NamedTuple):
    """One step, with its name: a failure prints the sequence."""

    name: str
    args: tuple[Any, ...]

    def on(self, store: MemoryStore) -> bool:
        """Whether it may have changed something: False when it raised one of our errors."""
        try:
            _OPERATIONS[self.name](store, *self.args)
        except (TradewindError, RolledBack):
            return False
        return True


class RolledBack(Exception):
    """Ends a transaction that is to leave nothing behind."""


# --- steps that take more than one call -------------------------------------------------------------------------------


def register(store: MemoryStore, file: str, dags: list[tuple[str, int]] | None, dynamic: bool) -> list[str]:
    result = broken(file) if dags is None else parsed(*(definition(*dag) for dag in dags), file=file, is_dynamic=dynamic)
    return sorted(store.register_file(result, paused_at_creation=dynamic))


def create(store: MemoryStore, dag_id: str, run_id: str, day: int | None, kind: RunType) -> Any:
    return store.create_run(new_run(store, run_id, dag_id, day, run_type=kind))


def written(
    store: MemoryStore, run: int, steps: dict[int, TaskState], flaw: str, end: RunState | None, extras: bool
) -> RunWrite:
    """A part of a run that matches the rows, except for its flaw."""
    held = rows(store, run)
    known = {slot: state for slot, state in steps.items() if slot in held}
    state = {"state": end, "ended_at": NOW + run * DAY, "reason": "over"} if end is not None else {}
    write = share(store, run, known, **state)
    if extras:
        _add_extras(write, held)
    if flaw == "revision":
        write.revision += 1
    elif flaw and write.tasks:
        last = write.tasks[-1]
        write.tasks[-1] = last._replace(expected_state=13) if flaw == "state" else last._replace(expected_fence=13)
    return write


def _add_extras(write: RunWrite, held: dict[int, Any]) -> None:
    write.xcoms = [xcom("t0", b"1", map_index=len(write.tasks)), xcom("t1", None, spill=f"s{write.run % 2}")]
    write.cleared_xcoms = [("t1", -1), ("t0", 1)]
    for task in write.tasks:
        row = task.row
        if row.state == TaskState.SUCCESS.code:
            write.ends.append(AttemptEnd(row.slot, row.fence, 1, "x", NOW, NOW + 1, "success", None, 0, None))
        elif row.state == TaskState.RUNNING.code and held[row.slot].state == TaskState.QUEUED.code:
            write.starts.append(AttemptStart(row.slot, row.fence, 1, "x", "h", "box", 1, f"n{row.fence}", NOW, NOW))


def commit(store: MemoryStore, epoch: int, shares: list[tuple[Any, ...]], new: list[tuple[Any, ...]], more: list[int]) -> Any:
    writes = [written(store, *one) for one in shares if store.run(one[0]) is not None]
    # of two runs of one DAG the second does not match: the schedule has another position by then
    runs = [
        due(new_run(store, run_id, dag_id, day, run_type=kind), store.need_dag(dag_id).last)
        for dag_id, run_id, day, kind in new
    ]
    return store.commit(Batch(epoch, NOW, writes, runs, more_rows=[(run, 1) for run in more]))


def clear(store: MemoryStore, run: int, slots: set[int], reset: bool) -> Any:
    return store.clear(run, slots, "ada", NOW + 3, "again", reset_run=reset)


def note(store: MemoryStore, run: int, slots: set[int], text: str | None) -> Any:
    with store.transaction():
        store.set_run_note(run, text, "ada", NOW)
        store.set_task_notes(run, slots, text, "ada", NOW)


def ask(store: MemoryStore, run: int, upto: int) -> Any:
    with store.transaction():
        store.append_feed(run, "note", b"p", "ada", NOW)
        store.consume_feed(run, upto)


def together(store: MemoryStore, ops: list[Op], fails: bool) -> Any:
    with store.transaction():
        for op in ops:
            op.on(store)
        if fails:
            raise RolledBack


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "register": register,
    "forget": lambda store, files: sorted(store.forget_files("dags", files, NOW)),
    "pause": lambda store, dag_id, paused: store.set_paused(dag_id, paused, "ada", NOW),
    "create": create,
    "commit": commit,
    "clear": clear,
    "mark": lambda store, run, slots, state: store.mark(
        run, slots, state, "ada", NOW + 4, "so it is", executors=dict.fromkeys(slots, "x")
    ),
    "set state": lambda store, run, state: store.set_run_state(run, state, "ada", NOW + 5, "so it is"),
    "note": note,
    "push": lambda store, run, key: store.push_xcoms(run, [xcom("t1", b"5", key), xcom("t0", None, key, spill="s0")]),
    "ask": ask,
    "pool": lambda store, name, slots: store.set_pool(PoolRow(name, slots, None, slots > 2), "ada", NOW),
    "drop pool": lambda store, name: store.delete_pool(name, "ada", NOW),
    "variable": lambda store, name, text: store.set_variable(VariableRow(name, b"v", text, text is None), "ada", NOW),
    "drop variable": lambda store, name: store.delete_variable(name, "ada", NOW),
    "connection": lambda store, name, replace: store.set_connection(
        ConnectionRow(name, "http", None, None, None, 80, None, b"p", None), "ada", NOW, replace=replace
    ),
    "drop connection": lambda store, name: store.delete_connection(name, "ada", NOW),
    "epoch": lambda store: store.begin_epoch("box", 1, "boot", NOW),
    "remember": lambda store, name, at: store.save_command_result(name, name.encode() + b"%d" % at, at),
    "post": lambda store, name, due: store.add_outbox_item("mail", name, b"p", NOW, due),
    "acknowledge": lambda store, item: store.delete_outbox_item(item),
    "postpone": lambda store, item, due, parked: store.postpone_outbox_item(item, due, parked),
    "retire": lambda store, before, keep, most: store.delete_old_runs(before, keep, NOW + DAY, most),
    "revoke": lambda store, name, until, at: store.revoke_token(name, until, at),
    "together": together,
}


def _op(name: str, *args: st.SearchStrategy[Any]) -> st.SearchStrategy[Op]:
    return st.tuples(*args).map(lambda drawn: Op(name, drawn))


_NEW = st.tuples(
    st.sampled_from(DAGS),
    st.sampled_from(["r1", "r2", "r3"]),
    DAYS,
    st.sampled_from([RunType.MANUAL, RunType.SCHEDULED]),
)
_SHARE = st.tuples(
    st.sampled_from(RUNS),
    st.dictionaries(st.integers(0, 3), st.sampled_from(list(TaskState)), max_size=3),
    st.sampled_from(["", "", "", "revision", "state", "fence"]),
    st.sampled_from([None, None, RunState.SUCCESS, RunState.FAILED]),
    st.booleans(),
)
_SCHEDULED_ONLY = _NEW.map(lambda new: (*new[:3], RunType.SCHEDULED))
_DAG_IN_FILE = st.tuples(st.sampled_from(DAGS), st.integers(0, 4))
_ITEM = st.integers(1, 4)

OPS = st.one_of(
    _op("commit", st.sampled_from([0, 0, 0, 1, 2]), st.lists(_SHARE, max_size=3), st.just([]), st.lists(st.sampled_from(RUNS))),
    _op("commit", st.sampled_from([0, 3]), st.lists(_SHARE, max_size=2), st.lists(_SCHEDULED_ONLY, max_size=2), st.just([])),
    _op("create", *(st.sampled_from(DAGS), st.sampled_from(["r1", "r2", "r3"]), DAYS, st.sampled_from(list(RunType)))),
    _op("clear", st.sampled_from(RUNS), st.sets(st.integers(0, 4)), st.booleans()),
    _op("mark", st.sampled_from(RUNS), st.sets(st.integers(0, 4)), st.sampled_from([S.SUCCESS, S.FAILED, S.SKIPPED])),
    _op("set state", st.sampled_from(RUNS), st.sampled_from(list(RunState))),
    _op("note", st.sampled_from(RUNS), st.sets(st.integers(0, 4)), st.none() | st.just("so")),
    _op("push", st.sampled_from(RUNS), st.sampled_from(NAMES)),
    _op("ask", st.sampled_from(RUNS), st.integers(0, 3)),
    _op("retire", MOMENTS, st.sampled_from([0, 0, 1]), st.integers(1, 3)),
    _op(
        "register",
        st.sampled_from(FILES),
        st.none() | st.lists(_DAG_IN_FILE, max_size=2, unique_by=lambda dag: dag[0]),
        st.booleans(),
    ),
    _op("forget", st.lists(st.sampled_from(FILES), max_size=2)),
    _op("pause", st.sampled_from([*DAGS, "c"]), st.booleans()),
    _op("pool", st.sampled_from(NAMES), st.integers(-2, 4)) | _op("drop pool", st.sampled_from(NAMES)),
    _op("variable", st.sampled_from(NAMES), st.none() | st.just("why")) | _op("drop variable", st.sampled_from(NAMES)),
    _op("connection", st.sampled_from(NAMES), st.booleans()) | _op("drop connection", st.sampled_from(NAMES)),
    _op("epoch"),
    _op("revoke", st.sampled_from(NAMES), MOMENTS, MOMENTS),
    _op("remember", st.sampled_from(NAMES), MOMENTS),
    _op("post", st.sampled_from(NAMES), st.none() | MOMENTS),
    _op("acknowledge", _ITEM) | _op("postpone", _ITEM, MOMENTS, st.none() | st.just("no such address")),
)
STORIES = st.lists(OPS | _op("together", st.lists(OPS, max_size=4), st.booleans()), min_size=15, max_size=40)


# --- reading everything --------------------------------------------------------------------------------------------


def everything(store: MemoryStore) -> dict[str, Any]:
    """Everything that can be read."""
    days = [NOW + day * DAY for day in range(5)]
    return {
        "plans": store.plans(),
        "definitions": [store.definition(plan.version) for plan in store.plans()],
        "files": store.known_files("dags"),
        "active": store.active_runs(),
        "between": [store.runs_between(dag_id, days[1], None) for dag_id in DAGS],
        "runs": [store.snapshot(run) for run in RUNS],
        "states": [store.states_of(run, ["t0", "t2"]) for run in RUNS],
        "attempts": [store.attempts_of_run(run) for run in RUNS],
        "notes": [notes(store, run) for run in RUNS],
        "xcoms": [store.xcoms(run, ["t1", "t0"], key) for run in RUNS for key in ("return_value", "x")],
        "previous": [store.previous_run(dag_id, day, scheduled_only=day % 2 == 0) for dag_id in DAGS for day in days],
        "failed": [store.previous_run(dag_id, days[4], scheduled_only=False, state=RunState.FAILED) for dag_id in DAGS],
        "latest": [store.last_run_with_xcom(dag_id, days[2], "t1", "return_value") for dag_id in DAGS],
        "ever": [store.task_ever_ran(dag_id, "t2", days[4]) for dag_id in DAGS],
        "keys": (store.pools(), store.variables(), store.connections()),
        "ops": [store.command_result(name) for name in NAMES],
        "revoked": [store.token_revoked(name) for name in NAMES],
        "posts": store.due_outbox_items(days[3]),
        "feed": [store.feed(run) for run in RUNS],
        "journal": [store.journal(run) for run in RUNS],
    }


def assert_folds(store: MemoryStore) -> None:
    """The state of each task instance is the sum of its journal."""
    for run in RUNS:
        snapshot = store.snapshot(run)
        folded: dict[int, tuple[int, int]] = {}
        for entry in store.journal(run):
            assert folded.get(entry.slot, (0, 0))[0] == entry.before
            folded[entry.slot] = (entry.after, entry.fence)
        for row in snapshot.rows if snapshot is not None else []:
            assert (row.state, row.fence) == folded.get(row.slot, (0, 0))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(STORIES)
def test_an_operation_has_its_whole_effect_or_none(story: list[Op]) -> None:
    store = MemoryStore()
    begin = [Op("register", ("one.py", [("a", 3)], False)), Op("register", ("two.py", [("b", 2)], False))]
    begin += [Op("create", (dag_id, f"r{day}", day, RunType.SCHEDULED)) for day in (0, 2) for dag_id in DAGS]
    begin += [Op("commit", (0, [(run, {0: TaskState.FAILED}, "", RunState.FAILED, True) for run in (1, 2)], [], []))]
    try:
        for op in begin:
            assert op.on(store)
        before = everything(store)
        for op in story:
            succeeded, after = op.on(store), everything(store)
            assert succeeded or after == before
            before = after
        assert_folds(store)
        copied = store.copy()
        assert everything(copied) == before
        copied.close()
    finally:
        store.close()
