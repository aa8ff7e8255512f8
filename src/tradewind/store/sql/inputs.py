"""Questions of tasks to people, and their answers."""

from __future__ import annotations

import msgspec

from tradewind.model.rows import InputAnswer
from tradewind.model.states import TaskState
from tradewind.model.waits import Deferral, InputWait
from tradewind.store.sql.engine import Engine
from tradewind.store.sql.run_changes import INPUT_ANSWER, input_answer_parameters

_decode_deferral = msgspec.msgpack.Decoder(Deferral).decode
_decode_names = msgspec.json.Decoder(tuple[str, ...]).decode


class InputOperations:
    """See `store.port.inputs`."""

    engine: Engine

    def input_answer(self, run: int, slot: int, fence: int) -> InputAnswer | None:
        row = self.engine.row(
            """SELECT responded_at, responded_by_id, responded_by_name, chosen_options, params_input FROM hitl_detail
               WHERE run = ? AND slot = ? AND fence = ? AND responded_at IS NOT NULL""",
            (run, slot, fence),
        )
        if row is None:
            return None
        at, user_id, user_name, chosen, params = row
        return InputAnswer(slot, fence, at, user_id, user_name, _decode_names(chosen), params.encode())

    def open_input(self, run: int, task_id: str, map_index: int) -> tuple[int, int, InputWait] | None:
        row = self.engine.row(
            """SELECT t.slot, t.fence, d.deferral FROM task_instance t JOIN deferral d
               ON d.run = t.run AND d.slot = t.slot AND d.fence = t.fence
               WHERE t.run = ? AND t.task_id = ? AND t.map_index = ? AND t.state = ?""",
            (run, task_id, map_index, TaskState.AWAITING_INPUT.code),
        )
        wait = None if row is None else _decode_deferral(row[2]).wait
        return (row[0], row[1], wait) if row is not None and isinstance(wait, InputWait) else None

    def answer_input(self, run: int, answer: InputAnswer) -> None:
        with self.engine.transaction():
            self.engine.change(INPUT_ANSWER, input_answer_parameters(run, answer), "the question of the task")
