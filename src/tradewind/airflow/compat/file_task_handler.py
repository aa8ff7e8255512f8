"""`airflow.utils.log.file_task_handler`: the handler of task logs that provider packages extend for remote logs.

Tradewind's worker writes task logs itself (docs/how-to/logs.md). These classes are log handlers that can also read their own files.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, TypedDict

from pydantic import BaseModel, ConfigDict

from tradewind.airflow.compat.helpers import parse_template_string, render_template_to_string
from tradewind.airflow.compat.version import version
from tradewind.sdk.conf import conf

__all__ = [
    "FileTaskHandler",
    "LogMessages",
    "LogMetadata",
    "LogResponse",
    "LogSourceInfo",
    "LogType",
    "RawLogStream",
    "StreamingLogResponse",
    "StructuredLogMessage",
]

FILENAME_TEMPLATE = (
    "dag_id={{ ti.dag_id }}/run_id={{ ti.run_id }}/task_id={{ ti.task_id }}/"
    "{% if ti.map_index >= 0 %}map_index={{ ti.map_index }}/{% endif %}attempt={{ try_number or ti.try_number }}.log"
)
"""Default of `logging.log_filename_template` of Airflow 2 and 3."""

_WRITTEN = frozenset({"running", "deferred"})
"""States of a task instance whose log is not complete."""

LogMessages = list[str]
"""Texts of logs."""
LogSourceInfo = list[str]
"""Sentences that name the sources of the texts."""
RawLogStream = Iterable[str]
LogResponse = tuple[list[str], list[str] | None]
StreamingLogResponse = tuple[list[str], list[Iterable[str]]]


class LogMetadata(TypedDict, total=False):
    """How far a log has been read."""

    end_of_log: bool
    log_pos: int


class LogType(StrEnum):
    """Which process wrote a log."""

    TRIGGER = "trigger"
    WORKER = "worker"


class StructuredLogMessage(BaseModel):
    """One line of a log: its time, its text, and further fields."""

    model_config = ConfigDict(extra="allow")

    timestamp: datetime | None = None
    event: str


def _message(line: str | StructuredLogMessage) -> StructuredLogMessage:
    """The message of one line of a file: JSON data, or a text. A message is returned unchanged."""
    if isinstance(line, StructuredLogMessage):
        return line
    if line.startswith("{"):
        try:
            return StructuredLogMessage.model_validate_json(line)
        except ValueError:  # it only looks like JSON
            pass
    return StructuredLogMessage(event=line)


class FileTaskHandler(logging.Handler):
    """Writes the log of one task instance to a file below a folder, and reads it back.

    Args:
        base_log_folder: the folder.
        filename_template: Jinja template of the file's name, or Airflow 1's format string.
    """

    trigger_should_wrap = True
    inherits_from_file_task_handler = True

    def __init__(
        self,
        base_log_folder: str | os.PathLike[str],
        filename_template: str | None = None,
        max_bytes: int = 0,
        backup_count: int = 0,
        delay: bool = False,
        **_kwargs: Any,
    ) -> None:
        super().__init__()
        self.handler: logging.Handler | None = None
        self.local_base = str(base_log_folder)
        self.filename_template = filename_template
        self.max_bytes, self.backup_count, self.delay = max_bytes, backup_count, delay
        self.maintain_propagate = False
        self.ctx_task_deferred = False
        self.task_context_logger: Any = None

    @property
    def log(self) -> logging.Logger:
        """A logger for messages of the handler itself."""
        return logging.getLogger(f"{type(self).__module__}.{type(self).__name__}")

    def set_context(self, ti: Any, *, identifier: str | None = None) -> Any:
        """Open the file of a task instance; records go there from now on."""
        self.handler = logging.FileHandler(self._init_file(ti, identifier=identifier), encoding="utf-8", delay=self.delay)
        if self.formatter is not None:
            self.handler.setFormatter(self.formatter)
        self.handler.setLevel(self.level)
        return None

    @staticmethod
    def add_triggerer_suffix(full_path: str, job_id: int | str | None = None) -> str:
        """The path of a triggerer's log beside the task's."""
        return f"{full_path}.trigger.{job_id}.log" if job_id else f"{full_path}.trigger"

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record to the file of the context."""
        if self.handler is not None:
            self.handler.emit(record)

    def flush(self) -> None:
        """Flush the file."""
        if self.handler is not None:
            self.handler.flush()

    def close(self) -> None:
        """Close the file."""
        if self.handler is not None:
            self.handler.close()
        super().close()

    def _render_filename(self, ti: Any, try_number: int, session: Any = None) -> str:
        """The name of a task instance's file, relative to the folder."""
        text = self.filename_template or conf.get("logging", "log_filename_template", fallback=FILENAME_TEMPLATE)
        plain, template = parse_template_string(text)
        if template is not None:
            return render_template_to_string(template, {"ti": ti, "task_instance": ti, "ts": "", "try_number": try_number})
        moment = getattr(ti, "logical_date", None) or getattr(ti, "execution_date", None)
        written = moment.isoformat() if moment is not None else ""
        facts = {"dag_id": ti.dag_id, "task_id": ti.task_id, "run_id": getattr(ti, "run_id", "")}
        return str(plain).format(**facts, execution_date=written, logical_date=written, try_number=try_number)

    def _init_file(self, ti: Any, *, identifier: str | None = None) -> str:
        """Create the folder and an empty file. Returns the path of the file."""
        path = Path(self.local_base, self._render_filename(ti, ti.try_number))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return str(path)

    def _read_from_local(self, worker_log_path: Path) -> tuple[list[str], list[str]]:
        """(names of the files, their texts), for a file and all files whose names begin with its name."""
        files = sorted(worker_log_path.parent.glob(f"{worker_log_path.name}*"))
        return [str(file) for file in files], [file.read_text(encoding="utf-8") for file in files]

    def _read_from_logs_server(self, ti: Any, worker_log_rel_path: str) -> tuple[list[str], list[str]]:
        """Nothing: no worker serves its files over HTTP, because workers send logs to the store."""
        return [], []

    def _read_remote_logs(self, ti: Any, try_number: int, metadata: Any = None) -> LogResponse:
        """Read the log from another system. Subclasses define this.

        Raises:
            NotImplementedError: in this class; `_read` then reads the local file.
        """
        raise NotImplementedError

    def _read(self, ti: Any, try_number: int, metadata: Any = None) -> tuple[Any, dict[str, Any]]:
        """(the messages of one try, how far they were read). As in Airflow 2, if the stand-in has its release: their text.

        The messages begin with a group that names the sources, unless an earlier call has read a part of them.
        """
        sources, logs = [], []
        with contextlib.suppress(NotImplementedError):
            sources, logs = (list(found or ()) for found in self._read_remote_logs(ti, try_number, metadata))
        if not logs or getattr(ti, "state", None) in _WRITTEN:
            more, local = self._read_from_local(Path(self.local_base, self._render_filename(ti, try_number)))
            sources, logs = [*sources, *more], [*local, *logs]
        lines = [line for log in logs for line in (log.splitlines() if isinstance(log, str) else log)]
        if version.startswith(("1.", "2.")):
            text = "\n".join([*sources, *lines])
            return text, {"end_of_log": True, "log_pos": len(text)}
        begin = (metadata or {}).get("log_pos")
        header = ["::group::Log message source details", *sources, "::endgroup::"] if begin is None else []
        messages = [StructuredLogMessage(event=line) for line in header] + [_message(line) for line in lines[begin or 0 :]]
        is_written = getattr(ti, "state", None) in _WRITTEN and ti.try_number == try_number
        return messages, {"end_of_log": not is_written, "log_pos": len(lines)}

    def read(self, task_instance: Any, try_number: int | None = None, metadata: Any = None) -> Any:
        """The logs of one try.

        Returns:
            The messages, and how far they were read. As in Airflow 2, if the stand-in has its release: lists of them for all tries.
        """
        if not version.startswith(("1.", "2.")):
            found, state = self._read(task_instance, try_number or task_instance.try_number, metadata)
            if isinstance(found, list) and found and isinstance(found[0], str):
                found = "".join(found)
            return ([_message(line) for line in found.splitlines()] if isinstance(found, str) else found), state
        tries = [try_number] if try_number is not None else range(1, (task_instance.try_number or 0) + 1)
        both = [self._read(task_instance, number, metadata) for number in tries]
        return [[("", text)] if isinstance(text, str) else text for text, _ in both], [state for _, state in both]
