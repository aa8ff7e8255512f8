"""The statements that write one run in a commit. Pure: an engine executes them in order, or all in one round trip."""

from __future__ import annotations

import msgspec

from tradewind.model.rows import DeferralRow, InputAnswer, InputRequest, NewCallbackRequest, RunWrite, TaskWrite
from tradewind.model.states import TaskState
from tradewind.store.sql.engine import FREE, GUARDED, Change, Row

_MOVE_RUN = """UPDATE dag_run SET revision = revision + 1, epoch = ?, state = ?, started_at = ?, ended_at = ?, reason = ?,
    journal_seq = ?, version = coalesce(?, version), bundle_version = coalesce(?, bundle_version)
    WHERE id = ? AND revision = ? AND journal_seq = ? AND epoch <= ?"""

_RESTARTING = TaskState.RESTARTING.code

_WRITE_TASK = f"""UPDATE task_instance SET state = ?, fence = ?, try_number = ?, max_tries = ?, resume = ?, requeues = ?,
    due_at = ?, queued_at = ?, started_at = ?, ended_at = ?, reason = ?, branch = ?, map_index = ?, map_length = ?,
    version = ?, pool = CASE WHEN state = {_RESTARTING} AND ? <> {_RESTARTING} THEN NULL ELSE pool END
    WHERE run = ? AND slot = ? AND state = ? AND fence = ?"""
"""A cleared attempt counts in the pool that a person chose until the attempt has ended; then the pool of the DAG counts again."""

JOURNAL = "INSERT INTO journal (run, seq, slot, fence, before, after, at, cause) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"

_ATTEMPT_START = """INSERT INTO attempt (run, slot, fence, try_number, executor, host, hostname, pid, nonce, queued_at,
    started_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""

ATTEMPT_END = """INSERT INTO attempt (run, slot, fence, try_number, executor, queued_at, ended_at, outcome, reason,
    exit_code, signal, rendered, cpu, peak_memory) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (run, slot, fence) DO UPDATE SET ended_at = excluded.ended_at, outcome = excluded.outcome,
    reason = excluded.reason, exit_code = excluded.exit_code, signal = excluded.signal,
    rendered = excluded.rendered, cpu = excluded.cpu, peak_memory = excluded.peak_memory"""

XCOM = """INSERT INTO xcom (run, task_id, map_index, key, value, spill, size, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (run, task_id, map_index, key) DO UPDATE SET value = excluded.value, spill = excluded.spill,
    size = excluded.size, at = excluded.at"""

_NEW_ROW = "INSERT INTO task_instance (run, slot, task_id, map_index, max_tries) VALUES (?, ?, ?, ?, ?)"

_GROW = "UPDATE dag_run SET task_count = task_count + ?, rows_created = rows_created + ? WHERE id = ?"

_DEFER = """INSERT INTO deferral (run, slot, fence, since, deferral, resumption) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (run, slot) DO UPDATE SET fence = excluded.fence, since = excluded.since, deferral = excluded.deferral,
    resumption = excluded.resumption"""

_UNDEFER = "DELETE FROM deferral WHERE run = ? AND slot = ?"

_INPUT_REQUEST = """INSERT INTO hitl_detail (run, slot, try_number, fence, created_at, subject, body, options, defaults,
    multiple, params, assigned_users) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (run, slot, try_number) DO UPDATE SET fence = excluded.fence, created_at = excluded.created_at,
    subject = excluded.subject, body = excluded.body, options = excluded.options, defaults = excluded.defaults,
    multiple = excluded.multiple, params = excluded.params, assigned_users = excluded.assigned_users, responded_at = NULL,
    responded_by_id = NULL, responded_by_name = NULL, chosen_options = NULL, params_input = NULL"""

INPUT_ANSWER = """UPDATE hitl_detail SET responded_at = ?, responded_by_id = ?, responded_by_name = ?, chosen_options = ?,
    params_input = ? WHERE run = ? AND slot = ? AND fence = ? AND responded_at IS NULL"""

_LABEL = "UPDATE task_instance SET map_label = ? WHERE run = ? AND slot = ?"

_POOL = "UPDATE task_instance SET pool = ? WHERE run = ? AND slot = ?"

_CLEAR_XCOMS = "DELETE FROM xcom WHERE run = ? AND task_id = ? AND map_index = ?"

_SUMMARY = """INSERT INTO run_summary (run, journal_seq, summary) VALUES (?, ?, ?)
    ON CONFLICT (run) DO UPDATE SET journal_seq = excluded.journal_seq, summary = excluded.summary"""

OUTBOX_ITEM = """INSERT INTO outbox (kind, identity, payload, created_at, due_at, slot, run) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (identity) DO NOTHING"""

encode_branch = msgspec.msgpack.Encoder().encode
_encode = msgspec.msgpack.Encoder().encode


def changes_of(write: RunWrite, epoch: int) -> list[Change]:
    """Return the statements that write the changes of a run. If a guarded one does not change all its rows, all are rolled back.

    Args:
        epoch: epoch of the scheduler that writes.
    """
    run = write.run
    changes: list[Change] = [(_MOVE_RUN, [_run_parameters(write, epoch)], GUARDED)]
    if write.new_rows:
        more = len(write.new_rows)
        changes.append((_NEW_ROW, [(run, *row) for row in write.new_rows], FREE))
        changes.append((_GROW, [(more, more, run)], GUARDED))
    if write.tasks:
        changes.append((_WRITE_TASK, [_task_parameters(run, task) for task in write.tasks], GUARDED))
    if write.labels:
        changes.append((_LABEL, [(label, run, slot) for slot, label in write.labels], GUARDED))
    if write.pools:
        changes.append((_POOL, [(pool, run, slot) for slot, pool in write.pools], GUARDED))
    if write.journal:
        seq = write.journal_seq
        changes.append((JOURNAL, [(run, seq + i, *entry) for i, entry in enumerate(write.journal, 1)], FREE))
    if write.starts:
        changes.append((_ATTEMPT_START, [(run, *start) for start in write.starts], FREE))
    if write.ends:
        changes.append((ATTEMPT_END, [(run, *end) for end in write.ends], FREE))
    if write.cleared_xcoms:
        changes.append((_CLEAR_XCOMS, [(run, *instance) for instance in write.cleared_xcoms], FREE))
    if write.xcoms:
        changes.append((XCOM, [(run, *xcom) for xcom in write.xcoms], FREE))
    if write.ended_waits:
        changes.append((_UNDEFER, [(run, slot) for slot in write.ended_waits], FREE))
    if write.deferrals:
        changes.append((_DEFER, [_deferral_parameters(run, row) for row in write.deferrals], FREE))
    if write.input_requests:
        changes.append((_INPUT_REQUEST, [_input_request_parameters(run, one) for one in write.input_requests], FREE))
    if write.input_answers:
        changes.append((INPUT_ANSWER, [input_answer_parameters(run, one) for one in write.input_answers], GUARDED))
    if write.callback_requests:
        changes.append((OUTBOX_ITEM, [outbox_parameters(item, run) for item in write.callback_requests], FREE))
    if write.summary is not None:
        changes.append((_SUMMARY, [(run, write.journal_seq + len(write.journal), write.summary)], FREE))
    return changes


def _run_parameters(write: RunWrite, epoch: int) -> Row:
    return (
        epoch,
        write.state.code,
        write.started_at,
        write.ended_at,
        write.reason,
        write.journal_seq + len(write.journal),
        write.version,
        write.bundle_version,
        write.run,
        write.revision,
        write.journal_seq,
        epoch,
    )


def outbox_parameters(item: NewCallbackRequest, run: int | None) -> Row:
    """Parameters of `OUTBOX_ITEM`."""
    due = item.at if item.due is None else item.due
    return item.kind, item.identity, item.payload, item.at, due, item.slot, run


def _deferral_parameters(run: int, row: DeferralRow) -> Row:
    resumption = None if row.resumption is None else _encode(row.resumption)
    return run, row.slot, row.fence, row.since, _encode(row.deferral), resumption


def _input_request_parameters(run: int, request: InputRequest) -> Row:
    wait = request.wait
    return (
        run,
        request.slot,
        request.try_number,
        request.fence,
        request.at,
        wait.subject,
        wait.body,
        _encode_text(wait.options),
        None if wait.defaults is None else _encode_text(wait.defaults),
        int(wait.multiple),
        wait.params.decode(),
        _encode_text([{"id": number, "name": name} for number, name in wait.assigned_users]),
    )


def input_answer_parameters(run: int, answer: InputAnswer) -> Row:
    """Parameters of `INPUT_ANSWER`."""
    chosen = _encode_text(answer.chosen)
    return answer.at, answer.user_id, answer.user_name, chosen, answer.params.decode(), run, answer.slot, answer.fence


def _encode_text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _task_parameters(run: int, write: TaskWrite) -> Row:
    row = write.row
    return (
        row.state,
        row.fence,
        row.try_number,
        row.max_tries,
        row.resume,
        row.requeues,
        row.due_at or None,
        row.queued_at or None,
        row.started_at or None,
        row.ended_at or None,
        row.reason,
        None if row.branch is None else encode_branch(row.branch),
        row.map_index,
        row.length,
        row.version,
        row.state,
        run,
        row.slot,
        write.expected_state,
        write.expected_fence,
    )
