"""Questions of tasks to people, and their answers (human in the loop)."""

from __future__ import annotations

from typing import Protocol

from tradewind.model.rows import InputAnswer
from tradewind.model.waits import InputWait


class InputReader(Protocol):
    """Reads questions and answers."""

    def input_answer(self, run: int, slot: int, fence: int) -> InputAnswer | None:
        """The answer to the question of this attempt; None: nobody has answered, or there is no question."""

    def open_input(self, run: int, task_id: str, map_index: int) -> tuple[int, int, InputWait] | None:
        """(slot, fence, question) of a task instance in state `awaiting_input`; None: it does not wait for an answer."""


class InputStore(Protocol):
    """Writes answers of people."""

    def answer_input(self, run: int, answer: InputAnswer) -> None:
        """Write an answer. Raises Changed: the question of this attempt is already answered, or does not exist."""
