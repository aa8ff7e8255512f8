"""Answers the requests of running user code from the store.

The live scheduler answers task processes through their worker hosts, `dag.test()` answers in its own process; both use this
module. An answer is given after the commit of everything that happened before, so a task sees the values of the tasks before it.

Secrets are decrypted only for the answer. The answer says that they are secrets, so that the task's log hides them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec

from tradewind.model.errors import nearest
from tradewind.model.rows import RunRow, VariableRow
from tradewind.model.secret_names import is_secret
from tradewind.model.states import RUN_STATES, TASK_STATES, RunState
from tradewind.model.waits import RunRef, TasksWait
from tradewind.scheduler.assets.answers import asset_answer, events_answer
from tradewind.scheduler.attempts.asked_tasks import asked_tasks
from tradewind.scheduler.attempts.row_changes import change_rows
from tradewind.scheduler.attempts.state_requests import set_state_entry, state_answer
from tradewind.scheduler.attempts.table_answers import table_answer
from tradewind.scheduler.runs.facts import run_facts
from tradewind.store.port import FullStore, Reader, RowReader
from tradewind.wire.messages import (
    AttemptKey,
    ChangeRows,
    Failure,
    FindRuns,
    GetAsset,
    GetAssetEvents,
    GetConnection,
    GetPreviousRun,
    GetStateEntry,
    GetTaskStates,
    GetVariable,
    ListRows,
    RunnerAnswer,
    RunnerRequest,
    SetStateEntry,
    SetVariable,
    Value,
    XComPull,
    XComs,
)


class Cipher(Protocol):
    """Encrypts texts for the store and decrypts them: `store.crypto.Vault`, or a class of the test kit."""

    def encrypt(self, plain: str) -> str: ...

    def decrypt(self, stored: str, what: str) -> str:
        """Decrypt a text. `what`: a description of the value. Raises ConfigError when no key fits."""
        ...


_encode = msgspec.msgpack.Encoder().encode
_decode_answer = msgspec.msgpack.Decoder(Value).decode


def answer(
    store: FullStore, cipher: Cipher, question: RunnerRequest, attempt: AttemptKey, at: int, *, only_variables: bool = False
) -> RunnerAnswer:
    """Answer one request of an attempt.

    Args:
        question: one of `wire.runtime.Question`; other types get a `Failure`. An op other than 0 is answered once: repeating it
            gives the same answer and has no second effect.
        attempt: the attempt that asks.
        at: the current time.
        only_variables: changes of connections and pools get a `Failure`.

    Raises:
        StoreError: the store cannot be used now.
        ConfigError: a secret cannot be decrypted.
        Conflict: a change is not valid.
    """
    if only_variables and isinstance(question, ChangeRows):
        wrong = next((change for change in question.changes if change.table != "variable"), None)
        if wrong is not None:
            return Failure(
                question.op,
                f"tasks of this deployment may not change the {wrong.table} {wrong.key!r}: scheduler.tasks_may_change is "
                f"variables. Use `tradewind {wrong.table}s`, or set it to all",
            )
    return _WritingAnswers(store, cipher, attempt, at).answer(question)


def answer_from_reader(store: Reader, cipher: Cipher, question: RunnerRequest) -> RunnerAnswer:
    """Answer a request of code outside of any attempt. Such code may only read; other requests get a `Failure`."""
    return _Answers(store, cipher, (0, 0, 0), 0).answer(question)


class _Answers:
    """Answers requests that only read."""

    def __init__(self, store: Reader, cipher: Cipher, attempt: AttemptKey, at: int) -> None:
        self._store = store
        self._cipher = cipher
        self._attempt = attempt
        self._at = at

    def answer(self, question: RunnerRequest) -> RunnerAnswer:
        match question:
            case XComPull():
                return XComs(question.op, tuple(self._xcoms(question)))
            case GetVariable():
                return self._variable(question)
            case GetConnection():
                return self._connection(question)
            case GetTaskStates():
                return self._states(question)
            case GetPreviousRun():
                return self._previous_run(question)
            case FindRuns():
                return self._runs(question)
            case ListRows():
                return table_answer(self._store, question)
            case GetAssetEvents():
                return events_answer(self._store, question, self._attempt[0])
            case GetAsset():
                return asset_answer(self._store, question)
            case GetStateEntry():
                return state_answer(self._store, question, self._attempt)
            case _:
                return Failure(question.op, f"{type(question).__name__} is no question that can be answered")

    # --- XComs ----------------------------------------------------------------------------------------------------

    def _xcoms(self, question: XComPull) -> Iterator[tuple[str, int, bytes, str | None]]:
        run = self._store.find_run(question.dag_id, question.run_id)
        if run is None:
            return
        indexes = question.map_indexes
        if not question.include_prior_dates or run.logical_date is None:
            yield from self._store.xcoms(run.id, question.task_ids, question.key, indexes)
            return
        for task_id in question.task_ids:
            latest = self._store.last_run_with_xcom(run.dag_id, run.logical_date, task_id, question.key)
            if latest is not None:
                yield from self._store.xcoms(latest, (task_id,), question.key, indexes)

    # --- variables and connections ----------------------------------------------------------------------------------

    def _variable(self, question: GetVariable) -> Value:
        row = self._store.variable(question.key)
        if row is None:
            return Value(question.op, False, nearest(question.key, (one.key for one in self._store.variables())))
        text = self._text(row.value, row.is_encrypted, f"variable {row.key!r}")
        return Value(question.op, True, text, secret=is_secret(question.key))

    def _text(self, stored: bytes, is_encrypted: bool, what: str) -> str:
        return self._cipher.decrypt(stored.decode(), what) if is_encrypted else stored.decode()

    def _named(self) -> str:
        """Return the name of the attempt's task, for the audit log."""
        number, slot, _ = self._attempt
        run = self._store.run(number)
        if run is None:
            return f"a task of run {number}"
        tasks = self._store.definition(run.version).tasks
        task_id = tasks[slot].task_id if slot < len(tasks) else str(slot)
        return f"task {run.dag_id}.{task_id} in {run.run_id}"

    def _connection(self, question: GetConnection) -> Value:
        row = self._store.connection(question.conn_id)
        if row is None:
            return Value(question.op, False, nearest(question.conn_id, (one.conn_id for one in self._store.connections())))
        whose = f"connection {row.conn_id!r}"
        parts = {
            "conn_type": row.conn_type,
            "description": row.description,
            "host": row.host,
            "login": row.login,
            "port": row.port,
            "schema": row.schema,
            "password": self._secret(row.password, f"the password of {whose}"),
            "extra": self._secret(row.extra, f"the extra of {whose}"),
        }
        return Value(question.op, True, parts, secret=True)

    def _secret(self, stored: bytes | None, what: str) -> str | None:
        return None if stored is None else self._cipher.decrypt(stored.decode(), what)

    # --- other tasks and runs ---------------------------------------------------------------------------------------

    def _states(self, question: GetTaskStates) -> Value:
        store = self._store
        if store.dag(question.dag_id) is None:
            return Value(question.op, False, nearest(question.dag_id, store.dag_ids()))
        return Value(question.op, True, [[run.logical_date, *one] for run, _, *one in task_states(store, question)])

    def _runs(self, question: FindRuns) -> Value | Failure:
        store, dag_id = self._store, question.dag_id
        if question.state is not None and question.state not in RUN_STATES:
            return _no_state(question.op, question.state)
        if store.dag(dag_id) is None:
            return Value(question.op, False, nearest(dag_id, store.dag_ids()))
        if question.run_id is not None:
            one = store.find_run(dag_id, question.run_id)
            found = [] if one is None else [one]
        else:
            state = None if question.state is None else RunState(question.state)
            found = store.latest_runs(
                dag_id, min(question.at_most, RUNS_MAX), state, question.run_types, question.start, question.end
            )
        return Value(question.op, True, [run_facts(run) for run in found])

    def _previous_run(self, question: GetPreviousRun) -> Value | Failure:
        state = None
        if question.state is not None:
            if question.state not in RUN_STATES:
                return _no_state(question.op, question.state)
            state = RunState(question.state)
        run = self._store.previous_run(question.dag_id, question.logical_date, scheduled_only=False, state=state)
        return Value(question.op, run is not None, None if run is None else run_facts(run))


RUNS_MAX = 1_000
"""Maximum number of runs in an answer to `FindRuns`."""


def _no_state(op: int, state: str) -> Failure:
    return Failure(op, f"{state!r} is no state of a run; there are {', '.join(RUN_STATES)}")


class _WritingAnswers(_Answers):
    """Answers all requests of an attempt."""

    def __init__(self, store: FullStore, cipher: Cipher, attempt: AttemptKey, at: int) -> None:
        super().__init__(store, cipher, attempt, at)
        self._writer = store

    def answer(self, question: RunnerRequest) -> RunnerAnswer:
        match question:
            case SetVariable():
                return self._set_variable(question)
            case ChangeRows():
                return self._change_rows(question)
            case SetStateEntry():
                return set_state_entry(self._writer, question, self._attempt, self._at)
            case _:
                return super().answer(question)

    def _set_variable(self, question: SetVariable) -> Value:
        return self._once(question.op, lambda actor: self._write_variable(question, actor))

    def _write_variable(self, question: SetVariable, actor: str) -> Value:
        store, at = self._writer, self._at
        found = store.variable(question.key) is not None
        if question.value is not None:
            row = VariableRow(question.key, self._cipher.encrypt(question.value).encode(), question.description, True)
            store.set_variable(row, actor, at)
        elif found:
            store.delete_variable(question.key, actor, at)
        return Value(question.op, found)

    def _change_rows(self, question: ChangeRows) -> Value:
        def write(actor: str) -> Value:
            impossible = change_rows(self._writer, self._cipher, question, actor, self._at)
            return Value(question.op, impossible is None, impossible)

        return self._once(question.op, write)

    def _once(self, number: int, write: Callable[[str], Value]) -> Value:
        """Write once for each op of an attempt: a repeated request gets the same answer and changes nothing.

        Args:
            number: the op; 0: each request writes.
            write: writes in the open transaction, under the name of the task for the audit log.
        """
        store = self._writer
        op = "task/{}/{}/{}/{}".format(*self._attempt, number)
        with store.transaction():
            known = store.command_result(op) if number else None
            if known is not None:
                return _decode_answer(known)
            answer = write(self._named())
            if number:
                store.save_command_result(op, _encode(answer), self._at)
        return answer


def task_states(store: RowReader, asked: GetTaskStates | TasksWait) -> Iterator[tuple[RunRow, RunRef, str | None, str | None]]:
    """Yield (run, logical date or run id in the request, task id or None, state or None) of all that exist."""
    for run, place in asked_runs(store, asked):
        if not asked.task_ids and asked.group is None:
            yield run, place, None, run.state.value
            continue
        wanted = asked_tasks(asked, store.definition(run.version))
        for task_id, codes in store.states_of(run.id, wanted).items():
            for code in codes:
                yield run, place, task_id, TASK_STATES[code].shown


def asked_runs(store: RowReader, asked: GetTaskStates | TasksWait) -> Iterator[tuple[RunRow, RunRef]]:
    for date in asked.logical_dates:
        run = store.previous_run(asked.dag_id, date + 1, scheduled_only=False)
        if run is not None and run.logical_date == date:
            yield run, date
    for run_id in asked.run_ids:
        run = store.find_run(asked.dag_id, run_id)
        if run is not None:
            yield run, run_id
