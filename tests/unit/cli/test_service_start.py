"""A service that the supervisor forks has nothing of the supervisor but its modules."""

from __future__ import annotations

import importlib
import json
import logging
import os
import signal
import sys
from pathlib import Path

import pytest

from tradewind.cli import service_start
from tradewind.cli.service_start import Entry, ForkedProcess, start_service
from tradewind.platform import HAVE_LINUX

pytestmark = pytest.mark.skipif(not HAVE_LINUX, reason="services are forked on Linux only")


def run(entry: Entry, folder: Path, inherits: tuple[int, ...] = ()) -> tuple[int, str]:
    with open(folder / "output", "w+b") as output:
        process = start_service(entry, "api", {"ONLY": "this"}, output.fileno(), inherits)
        code = process.wait()
        output.seek(0)
        return code, output.read().decode()


def is_open(descriptor: int) -> bool:
    """Whether it is an open file, other than /dev/null."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}") != os.devnull
    except OSError:
        return False


def describe(name: str, parent: int) -> int:
    print(
        json.dumps(
            {
                "name": name,
                "parent": parent == os.getppid(),
                "session": os.getsid(0) == os.getpid(),
                "environment": dict(os.environ),
                "files": [number for number in range(3, 256) if is_open(number)],
                "input": os.readlink("/proc/self/fd/0"),
                "handlers": [int(number) for number in signal.valid_signals() if callable(signal.getsignal(number))],
                "logging": len(logging.getLogger().handlers),
                "title": Path("/proc/self/cmdline").read_bytes().rstrip(b"\0").decode(),
                "short": Path("/proc/self/comm").read_text().strip(),
            }
        )
    )
    return 7


def test_a_service_keeps_nothing_of_the_supervisor(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    before = signal.signal(signal.SIGHUP, lambda *_: None)
    try:
        code, output = run(describe, tmp_path, (writer,))
    finally:
        signal.signal(signal.SIGHUP, before)
        os.close(reader)
        os.close(writer)
    assert code == 7
    assert json.loads(output) == {
        "name": "api",
        "parent": True,
        "session": True,
        "environment": {"ONLY": "this"},
        "files": [writer],
        "input": "/dev/null",
        "handlers": [signal.SIGINT],
        "logging": 0,
        "title": "tradewind: api",
        "short": "tw-api",
    }


def test_an_object_of_the_supervisor_closes_no_file_of_the_service(tmp_path: Path) -> None:
    owner = [open(tmp_path / "of the supervisor", "w")]  # noqa: SIM115

    def replace(name: str, parent: int) -> int:
        with open(tmp_path / "of the service", "w") as own:
            owner.clear()
            own.write("written")
        return 0

    assert run(replace, tmp_path) == (0, "")
    owner.pop().close()
    assert (tmp_path / "of the service").read_text() == "written"


def test_an_exception_of_a_service_is_in_its_output_and_its_caller_does_not_continue(tmp_path: Path) -> None:
    def fail(name: str, parent: int) -> int:
        raise LookupError("no such thing")

    code, output = run(fail, tmp_path)
    assert code == 1
    assert output.startswith("Traceback")
    assert output.rstrip().endswith("LookupError: no such thing")


def test_the_signal_that_ended_a_service_is_its_exit_code(tmp_path: Path) -> None:
    def wait(name: str, parent: int) -> int:
        os.write(1, b"x")
        signal.pause()
        return 0

    reader, writer = os.pipe()
    process = start_service(wait, "api", {}, writer, ())
    assert isinstance(process, ForkedProcess)
    os.read(reader, 1)
    assert process.poll() is None
    process.kill()
    assert process.wait() == -signal.SIGKILL == process.returncode
    process.send_signal(signal.SIGTERM)  # it has ended: nothing happens
    os.close(reader)
    os.close(writer)


def test_a_signal_right_after_the_start_ends_a_service(tmp_path: Path) -> None:
    """The service inherits the handler of the supervisor, which must not catch the signal."""

    def wait(name: str, parent: int) -> int:
        signal.alarm(10)  # ends the service if the signal is lost
        while True:
            signal.pause()

    caught: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: caught.append(number))
    try:
        for _ in range(20):
            process = start_service(wait, "api", {}, None, ())
            process.send_signal(signal.SIGTERM)
            assert process.wait() == -signal.SIGTERM
    finally:
        signal.signal(signal.SIGTERM, before)
    assert caught == []


def test_text_that_the_supervisor_has_not_flushed_is_written_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with open(tmp_path / "buffered", "w") as own:
        before, sys.stdout = sys.stdout, own
        try:
            own.write("of the supervisor\n")
            code, output = run(lambda name, parent: print("of the service") or 0, tmp_path)
        finally:
            sys.stdout = before
    assert (code, output) == (0, "of the service\n")
    assert (tmp_path / "buffered").read_text() == "of the supervisor\n"


def test_without_linux_a_new_interpreter_runs_the_module_of_the_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "service_of_this_test.py").write_text(
        "import os, sys\n"
        "def main(name, parent):\n"
        "    print(name, int(parent) == os.getppid(), os.environ['ONLY'])\n"
        "    return 7\n"
        "if __name__ == '__main__':\n"
        "    raise SystemExit(main(*sys.argv[1:]))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(service_start, "HAVE_LINUX", False)
    entry: Entry = importlib.import_module("service_of_this_test").main
    with open(tmp_path / "output", "w+b") as output:
        environment = {"ONLY": "this", "PYTHONPATH": str(tmp_path)}
        process = start_service(entry, "api", environment, output.fileno(), ())
        assert process.wait(30) == 7
        output.seek(0)
        assert output.read() == b"api True this\n"
