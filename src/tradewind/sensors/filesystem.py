"""A sensor that waits for a file."""

from __future__ import annotations

import glob
import os
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from tradewind.authoring.exceptions import AirflowException, AirflowNotFoundException
from tradewind.authoring.variables import Connection
from tradewind.sensors.base import BaseSensorOperator, refuse_deferrable


class FileSensor(BaseSensorOperator):
    """Waits until a file exists, or a folder that has a file somewhere inside.

    Args:
        filepath: path or glob pattern; a template. A relative one begins at the `path` in the extra of the connection.
        fs_conn_id: the connection of type fs.
        recursive: `**` in the pattern matches folders of any depth.
    """

    template_fields: Collection[str] = ("filepath",)
    ui_color = "#91818a"

    def __init__(
        self,
        *,
        filepath: str | os.PathLike[str],
        fs_conn_id: str = "fs_default",
        recursive: bool = False,
        deferrable: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        refuse_deferrable(self, deferrable)
        self.filepath = filepath
        self.fs_conn_id = fs_conn_id
        self.recursive = recursive

    @property
    def path(self) -> str:
        """The whole pattern.

        Raises:
            AirflowNotFoundException: it is relative, and there is no connection that says to what.
        """
        pattern = os.fspath(self.filepath)
        if os.path.isabs(pattern):
            return pattern
        try:
            base = Connection.get(self.fs_conn_id).extra_dejson.get("path", "")
        except AirflowNotFoundException as error:
            raise AirflowNotFoundException(
                f"filepath {pattern!r} of task {self.task_id!r} is relative, and {error} Its extra says where relative paths "
                'begin: {"path": "/data"}. Or write the whole path.'
            ) from None
        if not isinstance(base, str):
            raise AirflowException(f"connection {self.fs_conn_id!r}: the path in its extra is {base!r}; it must be a text")
        return os.path.join(base, pattern)

    def poke(self, context: Any) -> bool:
        pattern = self.path
        self.log.info("Poking for file %s", pattern)
        for found in glob.iglob(pattern, recursive=self.recursive):
            if os.path.isfile(found):
                modified = datetime.fromtimestamp(os.path.getmtime(found), tz=UTC)
                self.log.info("Found file %s, last modified %s", found, modified.isoformat(timespec="seconds"))
                return True
            if any(files for _, _, files in os.walk(found)):
                self.log.info("Found folder %s with files inside", found)
                return True
        return False
