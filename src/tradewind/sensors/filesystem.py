"""A sensor that waits for a file."""

from __future__ import annotations

import os
from collections.abc import Collection
from datetime import timedelta
from typing import Any, NoReturn

from tradewind.hooks.files import find_file
from tradewind.sdk.conf import deferrable_or_default
from tradewind.sdk.exceptions import AirflowException, AirflowNotFoundException
from tradewind.sdk.variables import Connection
from tradewind.sensors.base import BaseSensorOperator


class FileSensor(BaseSensorOperator):
    """Waits until a file exists, or a folder that contains a file at any depth.

    Args:
        filepath: a path or glob pattern; a template. A relative path starts at the `path` in the extra of the connection.
        fs_conn_id: the connection, of type fs; a template.
        recursive: `**` in the pattern matches folders of any depth.
        deferrable: poke once, then wait without a process. Default: the setting operators.default_deferrable.
        start_from_trigger: with `deferrable`, leave the first poke to the trigger.
        trigger_kwargs: accepted without effect.
    """

    template_fields: Collection[str] = ("filepath", "fs_conn_id")
    ui_color = "#91818a"

    def __init__(
        self,
        *,
        filepath: str | os.PathLike[str],
        fs_conn_id: str = "fs_default",
        recursive: bool = False,
        deferrable: bool | None = None,
        start_from_trigger: bool = False,
        trigger_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.deferrable = deferrable_or_default(deferrable)
        self.at_once = start_from_trigger
        self.filepath = filepath
        self.fs_conn_id = fs_conn_id
        self.recursive = recursive

    @property
    def path(self) -> str:
        """The complete pattern.

        Raises:
            AirflowNotFoundException: the path is relative, and there is no connection with a base path.
        """
        pattern = os.fspath(self.filepath)
        if os.path.isabs(pattern):
            return pattern
        try:
            base = Connection.get(self.fs_conn_id).extra_dejson.get("path", "")
        except AirflowNotFoundException as error:
            raise AirflowNotFoundException(
                f"filepath {pattern!r} of task {self.task_id!r} is relative, and {error} The extra of the connection must contain "
                'the base path: {"path": "/data"}. Or use an absolute path.'
            ) from None
        if not isinstance(base, str):
            raise AirflowException(f"connection {self.fs_conn_id!r}: the path in its extra is {base!r}; it must be a string")
        return os.path.join(base, pattern)

    def poke(self, context: Any) -> bool:
        pattern = self.path
        self.log.info("Poking for file %s", pattern)
        found = find_file(pattern, self.recursive)
        if found is not None:
            self.log.info("%s", found)
        return found is not None

    def execute(self, context: Any) -> Any:
        if not self.deferrable:
            return super().execute(context)
        if self.at_once or not self._poke_once(context):
            self._wait_in_trigger()
        return None

    def _wait_in_trigger(self) -> NoReturn:
        from tradewind.triggers.file import FileTrigger  # lazy import: needs asyncio

        trigger = FileTrigger(self.path, self.recursive, self.poke_interval)
        self.defer(trigger=trigger, method_name="execute_complete", timeout=timedelta(seconds=self.timeout))

    def execute_complete(self, context: Any, event: Any = None) -> None:
        """Continue when the trigger has found the file."""
        if not event:
            raise AirflowException(f"{self.filepath} was not found")
        self.log.info("Found the file %s", self.filepath)
