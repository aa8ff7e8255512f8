"""The process that reads the shipped examples."""

from __future__ import annotations

from typing import Any

import pytest

from tradewind.cli.compose import parser
from tradewind.client import control
from tradewind.settings import Settings, load
from tradewind.wire import commands as c


class Recorder:
    """Takes the place of the connection to the scheduler."""

    calls: list[Any] = []

    def __init__(self, *_arguments: object) -> None:
        self.calls.clear()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def call(self, command: Any) -> dict[str, Any]:
        self.calls.append(command)
        return {}


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Settings:
    monkeypatch.setattr(control, "ControlClient", Recorder)
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path))
    return load()


def test_commands_know_that_the_examples_are_being_read(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    before: list[Any] = []

    def read(*_arguments: object) -> list[Any]:
        before.extend(Recorder.calls)
        return []

    monkeypatch.setattr(parser, "parse_bundle", read)
    parser.register_examples(settings)
    (first,) = before
    assert isinstance(first, c.NoteUnreadFiles)
    assert first.unread == first.files > 0
    assert Recorder.calls[-1] == c.NoteUnreadFiles(first.bundle, first.files, 0)


def test_examples_that_cannot_be_read_keep_no_command_waiting(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(parser, "parse_bundle", fail)
    with pytest.raises(OSError, match="no space left"):
        parser.register_examples(settings)
    assert Recorder.calls[-1].unread == 0
