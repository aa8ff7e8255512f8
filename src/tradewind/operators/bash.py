"""Tasks that run a shell command."""

from __future__ import annotations

import codecs
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tradewind.authoring.calling import arguments_for
from tradewind.authoring.decorators import DecoratedOperator
from tradewind.authoring.exceptions import AirflowException, AirflowSkipException
from tradewind.authoring.operator import BaseOperator
from tradewind.authoring.run import finished
from tradewind.authoring.templates import render_value
from tradewind.model.errors import DefinitionError

if TYPE_CHECKING:
    from collections.abc import Iterator

TERM_GRACE = 5.0
"""Seconds between TERM and KILL when the task is stopped."""

_CHUNK = 1 << 16


MARKS = ("TRADEWIND_TASKS_OF", "TRADEWIND_ATTEMPT")
"""By these a command that outlived everything else is known for what it is, so it has them whatever `env` says."""


class BashOperator(BaseOperator):
    """Runs a command in bash, in a session of its own; its output goes to the task's log as it comes.

    The last line of output is pushed as XCom. The task fails when the command does: end pipes with `set -o pipefail`, and
    sequences with `set -e`, where an earlier part may fail.

    Args:
        bash_command: the command, or the name of a `.sh` or `.bash` file with one; a template. A name with a blank behind it
            is run as it is, without being rendered.
        env: environment of the command; None: that of the task.
        append_env: `env` is added to the environment of the task instead of taking its place.
        output_encoding: of the command's output.
        skip_on_exit_code: exit codes that mean "skip this task".
        cwd: where it runs; None: an empty temporary folder.
        output_processor: a function that makes the XCom from the last line, such as `json.loads`.
    """

    template_fields: Collection[str] = ("bash_command", "env", "cwd")
    template_fields_renderers: Mapping[str, str] = {"bash_command": "bash", "env": "json"}
    template_ext: Sequence[str] = (".sh", ".bash")
    ui_color = "#f0ede4"

    def __init__(
        self,
        *,
        bash_command: Any,
        env: dict[str, str] | None = None,
        append_env: bool = False,
        output_encoding: str = "utf-8",
        skip_on_exit_code: int | Collection[int] | None = 99,
        cwd: str | os.PathLike[str] | None = None,
        output_processor: Callable[[str], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        try:
            codecs.lookup(output_encoding)
        except LookupError:
            raise DefinitionError(f"{self._called()}: output_encoding is {output_encoding!r}, which is unknown") from None
        self.bash_command = bash_command
        self.env = env
        self.append_env = append_env
        self.output_encoding = output_encoding
        self.skip_on_exit_code = _codes(skip_on_exit_code)
        self.cwd = cwd
        self.output_processor = output_processor
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def execute(self, context: Any) -> Any:
        command = self.bash_command
        if not isinstance(command, str) or not command.strip():
            raise AirflowException(f"bash_command of task {self.task_id!r} is {command!r}; it must be a command")
        with self._folder() as folder:
            code, last_line = self._run([_bash(), "-c", command], folder, self.get_env(context))
        if code in self.skip_on_exit_code:
            raise AirflowSkipException(f"the command ended with exit code {code}, which means: skip")
        if code != 0:
            raise AirflowException(f"the command {_ending(code)}")
        return self.output_processor(last_line) if self.output_processor is not None else last_line

    def get_env(self, context: Any) -> dict[str, str]:
        """The environment of the command: the task's, `env` instead or over it, and variables that name the attempt."""
        whole = self.env is None or self.append_env
        env = dict(os.environ) if whole else {name: os.environ[name] for name in MARKS if name in os.environ}
        env.update(context["ti"].environment())
        for name, value in (self.env or {}).items():
            if not isinstance(value, str):
                raise AirflowException(f"env of task {self.task_id!r} has the value {value!r} for {name}; it must be a text")
            env[name] = value
        return env

    @contextmanager
    def _folder(self) -> Iterator[str]:
        if self.cwd is None:
            with tempfile.TemporaryDirectory(prefix="tradewind-bash-", ignore_cleanup_errors=True) as folder:
                yield folder
            return
        path = Path(self.cwd)
        if not path.exists():
            raise AirflowException(f"cwd of task {self.task_id!r} is {str(path)!r}, which does not exist")
        if not path.is_dir():
            raise AirflowException(f"cwd of task {self.task_id!r} is {str(path)!r}, which is not a folder")
        yield str(path)

    def _run(self, arguments: list[str], folder: str, env: dict[str, str]) -> tuple[int, str]:
        """Run a program to its end; returns its exit code (negative: the signal) and the last line of its output."""
        sys.stdout.flush()
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=env,
            start_new_session=True,  # so that on_kill reaches everything it starts
        )
        self._process = process
        try:
            assert process.stdout is not None
            last_line = self._stream(process.stdout)
            code = process.wait()
        except BaseException:
            self.on_kill()
            process.wait()
            raise
        finally:
            if process.stdout is not None:
                process.stdout.close()
            self._process = None
        if self._stopped:
            raise AirflowException("the command was stopped")
        return code, last_line

    def _stream(self, output: IO[bytes]) -> str:
        """Copy the output to stdout as it comes, until nobody can write any more; returns its last line.

        A line is kept only while it may be the last one, so that output of any length needs little memory.
        """
        decoder = codecs.getincrementaldecoder(self.output_encoding)(errors="backslashreplace")
        complete = ""
        begun: list[str] = []
        ended = True
        at_end = False
        while not at_end:
            chunk = output.read1(_CHUNK)  # type: ignore[attr-defined]  # a BufferedReader
            at_end = not chunk
            text = decoder.decode(chunk, final=at_end)
            if not text:
                continue
            sys.stdout.write(text)
            sys.stdout.flush()
            *lines, rest = text.split("\n")
            if lines:
                complete = lines[-1] if len(lines) > 1 else "".join((*begun, lines[0]))
                begun.clear()
            ended = not rest
            if rest and self.do_xcom_push:
                begun.append(rest)
        if not ended:
            sys.stdout.write("\n")
            sys.stdout.flush()
            return "".join(begun).rstrip()
        return complete.rstrip()

    def on_kill(self) -> None:
        """End the command and everything in its session: TERM, and KILL for what is left after a few seconds.

        Called from a signal handler, maybe in the middle of `Popen.wait`: it must not wait for that object's lock.
        """
        process = self._process
        if process is None:
            return
        self._stopped = True
        group = process.pid
        if not _signal_group(group, signal.SIGTERM):
            return
        self.log.info("Sent SIGTERM to the process group of the command")
        deadline = time.monotonic() + TERM_GRACE
        while _is_alive(group) and time.monotonic() < deadline:
            time.sleep(0.02)
        if _is_alive(group):
            self.log.warning("The command ignored SIGTERM for %g seconds: sending SIGKILL", TERM_GRACE)
            _signal_group(group, signal.SIGKILL)


def _codes(given: int | Iterable[int] | None) -> frozenset[int]:
    if given is None:
        return frozenset()
    return frozenset((given,) if isinstance(given, int) else given)


def _bash() -> str:
    found = shutil.which("bash")
    if found is None:
        raise AirflowException("bash is not on this machine's PATH; a BashOperator needs it")
    return found


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "an unknown signal"
    return f"was killed by signal {-code} ({name})"


def _signal_group(group: int, number: int) -> bool:
    """False: nobody is there any more."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # some of them changed their user; the others got it
    return True


def _is_alive(group: int) -> bool:
    """Does a process of the group live? The dead are taken away first: they would count."""
    try:
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
    return _signal_group(group, 0)


class BashDecoratedOperator(DecoratedOperator, BashOperator):
    """Behind `@task.bash`: the function returns the command, which may be a template."""

    template_fields: Collection[str] = ("op_args", "op_kwargs", "env", "cwd")
    custom_operator_name = "@task.bash"

    def __init__(self, *, python_callable: Callable[..., Any], **kwargs: Any) -> None:
        super().__init__(python_callable=python_callable, kwargs_to_upstream={"bash_command": None}, **kwargs)

    def execute(self, context: Any) -> Any:
        call = arguments_for(self.python_callable, self.op_args, self.op_kwargs, context)
        command = finished(self.python_callable(*self.op_args, **call))
        if not isinstance(command, str) or not command.strip():
            name = getattr(self.python_callable, "__name__", "the function")
            raise TypeError(f"{name}, under @task.bash, returned {command!r}; it must return a command")
        self.bash_command = render_value(command, context, self)
        return super().execute(context)
