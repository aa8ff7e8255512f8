"""Converts exceptions, and the ends of processes, to problems with a message and a line."""

from __future__ import annotations

import os
import re
import signal
import sys
import traceback
from types import FrameType, TracebackType

import tradewind
from tradewind.model.moments import SECOND
from tradewind.parser import python2
from tradewind.parser.parse_result import Problem
from tradewind.provider_packages import third_party

MESSAGE_MAX = 2000
TRACE_MAX = 20_000
FRAMES_MAX = 30
REPORT_LOST = 97
"""Exit code of a parse child that could not write its report."""

_OURS = os.path.dirname(os.path.realpath(tradewind.__file__)) + os.sep


def from_exception(error: BaseException, path: str) -> Problem:
    """The problem for an exception of an import.

    Args:
        path: absolute path of the DAG file.
    """
    line = _line_of(error, path)
    if isinstance(error, SystemExit):
        given = "" if error.code is None else repr(error.code) if isinstance(error.code, str) else str(error.code)
        message = f"importing it called sys.exit({given}){_in_line(line)}; a DAG file must not end the process"
    elif isinstance(error, SyntaxError):
        where = f" ({os.path.basename(error.filename)}, line {error.lineno})" if error.filename and error.lineno else ""
        message = f"{type(error).__name__}: {error.msg}{where}"
    else:
        message = f"{type(error).__name__}: {_sentence(error)}" if str(error).strip() else type(error).__name__
    notes = [note for note in getattr(error, "__notes__", ()) if isinstance(note, str)]
    older = python2.advice(error)
    if older:
        notes.append(older)
    elif isinstance(error, ModuleNotFoundError):
        advice = third_party.advice(error.name or "")
        notes += [advice] if "pip install" not in message else []
    message = ". ".join([message, *filter(None, notes)])
    return Problem(_one_line(message), _trace(error), line)


def out_of_memory(error: BaseException, path: str, memory_limit: int) -> Problem:
    """The problem for a MemoryError under the configured limit."""
    found = from_exception(error, path)
    if not memory_limit:
        return found
    return Problem(
        f"MemoryError{_in_line(found.line)}: importing it needs more than {memory_limit // (1 << 20)} MiB "
        "(setting parser.memory_limit_mb)",
        found.stack_trace,
        found.line,
    )


def too_slow(file: str, timeout: int, note: str, path: str) -> Problem:
    """The problem for a file that exceeded the time limit. `note`: faulthandler's output at that time."""
    line = _line_in_note(note, path)
    return Problem(
        f"importing {file} took longer than {timeout / SECOND:g} s (setting parser.timeout) and was stopped{_in_line(line)}",
        _frames_of_note(note),
        line,
    )


def from_status(status: int, note: str, path: str, cpu_seconds: int, zygote_died: bool = False) -> Problem:
    """The problem for a process that ended without a report.

    Args:
        status: the status from waitpid.
        note: the crash note: the line that called `os._exit`, or faulthandler's frames.
        cpu_seconds: the limit of CPU time.
        zygote_died: the child killed its parent process; `status` is the parent's.
    """
    line = _line_in_note(note, path)
    code = os.waitstatus_to_exitcode(status)
    if zygote_died:
        message = f"importing it killed the process that reads DAG files ({_exit_name(code)})"
    elif code == REPORT_LOST:
        message = "importing it closed file descriptors that belong to the process (os.closerange?), so there is no report"
    elif code >= 0:
        called = re.match(r"os\._exit\((.*?)\)", note)
        message = f"importing it ended the process: {called.group() if called else f'exit code {code}'}{_in_line(line)}"
    elif -code == signal.SIGXCPU:
        message = f"importing it used more than {cpu_seconds} s of CPU time (setting parser.timeout){_in_line(line)}"
    elif -code == signal.SIGKILL:
        message = (
            "importing it ended the process: SIGKILL; the kernel sends this when the machine is out of memory, "
            "unless the file or a person sent it"
        )
    else:
        message = f"importing it crashed the interpreter: {_exit_name(code)}{_in_line(line)}"
    return Problem(message, _frames_of_note(note), line)


def with_output(problem: Problem, output: str) -> Problem:
    """The problem with the end of the file's output appended to its stack trace."""
    if not output.strip():
        return problem
    trace = f"{problem.stack_trace.rstrip()}\n--- end of the output ---\n{output}".lstrip("\n")
    return Problem(problem.message, trace, problem.line)


# --- exceptions -------------------------------------------------------------------------------------------------------


def _sentence(error: BaseException) -> str:
    return error.args[0] if isinstance(error, KeyError) and error.args and isinstance(error.args[0], str) else str(error)


def _one_line(text: str) -> str:
    text = " ".join(part.strip() for part in text.splitlines() if part.strip())
    return text if len(text) <= MESSAGE_MAX else text[: MESSAGE_MAX - 1] + "…"


def _in_line(line: int | None) -> str:
    return "" if line is None else f" in line {line}"


def _line_of(error: BaseException, path: str) -> int | None:
    """The innermost line of the DAG file; for a SyntaxError in it, the line of the error."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return error.lineno
    found = None
    step: TracebackType | None = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == path:
            found = step.tb_lineno
        step = step.tb_next
    return found


def _trace(error: BaseException) -> str:
    """The traceback as Python shows it, without the frames of Tradewind and of the import system."""
    try:
        trace = traceback.TracebackException.from_exception(error, limit=-FRAMES_MAX, compact=True)
        _trim(trace)
        text = "".join(trace.format())
    except Exception:  # __str__ or __cause__ of the exception fails; the message exists already
        text = f"{type(error).__name__}\n"
    return text if len(text) <= TRACE_MAX else "…" + text[-TRACE_MAX:]


def _trim(trace: traceback.TracebackException) -> None:
    todo, seen = [trace], set()
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        one.stack = traceback.StackSummary.from_list([frame for frame in one.stack if not _is_ours(frame.filename)])
        todo += [other for other in (one.__cause__, one.__context__, *(getattr(one, "exceptions", None) or ())) if other]


def _is_ours(filename: str) -> bool:
    return filename.startswith((_OURS, "<frozen ")) or os.path.realpath(filename).startswith(_OURS)


# --- ends of processes and crash notes --------------------------------------------------------------------------------

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')


def _exit_name(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _line_in_note(note: str, path: str) -> int | None:
    """The innermost frame of the DAG file in faulthandler's output, which starts with the innermost frame."""
    for found in _FRAME.finditer(note):
        if found["file"] == path:
            return int(found["line"])
    return None


def _frames_of_note(note: str) -> str:
    """The note without the frames of Tradewind and of the interpreter; of a deep recursion, the innermost frames."""
    kept = []
    for line in note.splitlines():
        frame = _FRAME.search(line)
        if line.startswith("Extension modules:") or (frame and _is_ours(frame["file"])):
            continue
        kept.append(line)
    if len(kept) > FRAMES_MAX:
        kept[FRAMES_MAX:] = [f"  … and {len(kept) - FRAMES_MAX} more lines"]
    return "\n".join(kept).strip()[:TRACE_MAX]


def note_of_exit(code: object) -> str:
    """The crash note of the replaced `os._exit`: the call and its frames, innermost first."""
    lines = [f"os._exit({code!r})"]
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and len(lines) <= FRAMES_MAX:
        lines.append(f'  File "{frame.f_code.co_filename}", line {frame.f_lineno} in {frame.f_code.co_name}')
        frame = frame.f_back
    return "\n".join(lines)
