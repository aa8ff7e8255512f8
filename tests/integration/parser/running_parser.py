"""A parser with a real folder and real child processes, and a fake scheduler that only stores registrations."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict

from tradewind.parser.children import ParseChildren, ReadResult
from tradewind.parser.config import ParserConfig
from tradewind.parser.service import ParserService
from tradewind.platform.clock import SystemClock
from tradewind.platform.loop import Loop
from tradewind.wire.commands import Command, name_of, receive, request_for, result_for
from tradewind.wire.messages import CommandResult

DEADLINE_SECONDS = 40.0


class Store:
    """A fake scheduler with the rules of the store: last valid versions are kept, and a DAG id belongs to the first file that
    has it.
    """

    def __init__(self) -> None:
        self.files: dict[str, dict[str, Any]] = {}
        """The last valid registration of each file."""
        self.problems: dict[str, dict[str, Any]] = {}
        self.owner: dict[str, str] = {}
        self.hashes: dict[str, list[str]] = {}
        """All versions that a DAG has had."""
        self.commands: list[str] = []
        self.unread: list[tuple[int, int]] = []
        """(files, unread files), each time that the parser told them."""
        self.registrations: list[dict[str, Any]] = []
        """All registrations in their order."""

    def command(self, command: Command[Any]) -> Any:
        name, args = name_of(command), asdict(command)
        if name == "note_unread_files":
            self.unread.append((args["files"], args["unread"]))
            return None
        self.commands.append(name)
        if name == "known_files":
            assert args == {"bundle": "dags-folder"}
            return {file: [last["file_hash"], last["is_dynamic"]] for file, last in self.files.items() if last["dags"]}
        if name == "register_files":
            return {"changed": [dag_id for one in args["files"] for dag_id in self._register(asdict(one))]}
        assert name == "forget_files", name
        return {"gone": [dag_id for file in args["files"] for dag_id in self._forget(file)]}

    def _register(self, registration: dict[str, Any]) -> list[str]:
        file, changed = registration["file"], []
        registration["problem"] = None if registration["problem"] is None else asdict(registration["problem"])
        self.registrations.append(registration)
        problem = registration["problem"]
        taken = []
        for dag_id, _, version in registration["dags"]:
            if self.owner.setdefault(dag_id, file) != file:
                taken.append(dag_id)
                continue
            versions = self.hashes.setdefault(dag_id, [])
            if versions[-1:] != [version]:
                versions.append(version)
                changed.append(dag_id)
        if taken:
            problem = {"message": f"{taken} taken", "stack_trace": "", "line": None}
        if problem is None or registration["dags"]:
            if registration["problem"] is None:
                mine = {dag_id for dag_id, _, _ in registration["dags"]}
                gone = [dag_id for dag_id, owner in self.owner.items() if owner == file and dag_id not in mine]
                for dag_id in gone:
                    del self.owner[dag_id]
                changed += gone
            self.files[file] = registration
        self.problems.pop(file, None)
        if problem is not None:
            self.problems[file] = problem
        return changed

    def _forget(self, file: str) -> list[str]:
        self.files.pop(file, None)
        self.problems.pop(file, None)
        gone = [dag_id for dag_id, owner in self.owner.items() if owner == file]
        for dag_id in gone:
            del self.owner[dag_id]
        return gone

    def dags(self) -> set[str]:
        return set(self.owner)


class RunningParser:
    """One parser, from its start to its end. `until` runs its loop."""

    def __init__(self, folder: Path, store: Store | None = None, **config: Any) -> None:
        self.folder = folder
        self.store = store or Store()
        self.config = msgspec.structs.replace(ParserConfig(str(folder), timeout=20_000_000), **config)
        clock = SystemClock()
        self.loop = Loop(clock)
        self.children = ParseChildren(self.config, self.loop, clock)
        self.read: list[str] = []
        original = self.children.read

        def read_and_note(file: str, done: Callable[[ReadResult], None], *, folder: str = "", first: bool = False) -> None:
            self.read.append(file)
            original(file, done, folder=folder, first=first)

        self.children.read = read_and_note  # type: ignore[method-assign]
        self.service = ParserService(self.config, clock, self.loop, self._send, self.children)

    def _send(self, command: Command[Any], answered: Callable[[CommandResult], None]) -> None:
        value = self.store.command(receive(request_for("op", command, "parser")).command)
        self.loop.call_later(0, lambda: answered(result_for("op", value)))

    def start(self) -> RunningParser:
        self.children.start()
        self.service.on_scheduler_connected()
        self.until(self.service.idle)
        return self

    def until(self, happened: Callable[[], bool]) -> None:
        """Run the loop until a condition is true; fail after the deadline."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not happened():
            assert time.monotonic() < deadline, (self.store.problems, self.store.owner, self.read)
            self.loop.turn(50_000)

    def until_registered(self, file: str, count: int = 1) -> dict[str, Any]:
        """Run until the scheduler has received `count` more registrations of this file. Returns the last one."""
        wanted = len(self.registrations_of(file)) + count
        self.until(lambda: len(self.registrations_of(file)) >= wanted)
        return self.registrations_of(file)[-1]

    def registrations_of(self, file: str) -> list[dict[str, Any]]:
        return [one for one in self.store.registrations if one["file"] == file]

    def write(self, file: str, text: str) -> Path:
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def replace(self, file: str, text: str) -> None:
        """Write a file as good editors do: a new file, then a rename."""
        draft = self.folder / (file + ".new")
        draft.write_text(text)
        os.replace(draft, self.folder / file)

    def close(self) -> None:
        self.service.stop()
        self.children.close()
        self.loop.close()


def dag_text(*dag_ids: str, tasks: int = 2, head: str = "") -> str:
    lines = ["from tradewind import DAG", "from tradewind.operators.empty import EmptyOperator", head]
    for dag_id in dag_ids:
        lines.append(f"with DAG({dag_id!r}, schedule='@daily'):")
        lines += [f"    EmptyOperator(task_id='t{number}')" for number in range(tasks)]
    return "\n".join(lines) + "\n"
