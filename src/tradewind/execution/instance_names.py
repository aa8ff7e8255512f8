"""What names a task instance: its key, the address of its log, and its dates as DAG authors get them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from tradewind.model.moments import from_micros, to_micros
from tradewind.sdk.conf import conf

if TYPE_CHECKING:
    from pendulum import DateTime

XCOM_RETURN_KEY = "return_value"


class TaskInstanceKey(NamedTuple):
    """Identifies one try of a task instance."""

    dag_id: str
    task_id: str
    run_id: str
    try_number: int = 1
    map_index: int = -1

    @property
    def primary(self) -> tuple[str, str, str, int]:
        """What identifies the task instance, whatever the try."""
        return self.dag_id, self.task_id, self.run_id, self.map_index

    @property
    def key(self) -> TaskInstanceKey:
        return self

    def with_try_number(self, try_number: int) -> TaskInstanceKey:
        """The key of another try."""
        return self._replace(try_number=try_number)

    @classmethod
    def from_dict(cls, dictionary: Mapping[str, Any]) -> TaskInstanceKey:
        """The key with these parts. Raises TypeError: a part is missing or unknown."""
        return cls(**dictionary)


def to_pendulum(micros: int | None) -> DateTime | None:
    """A date for DAG authors: a pendulum datetime in UTC."""
    if micros is None:
        return None
    import pendulum  # lazy import: takes 80 ms, and many tasks use no date

    return pendulum.instance(from_micros(micros))


def micros_of(date: datetime) -> int:
    """Microseconds of a date that an author gave (any subclass of datetime). A date without a time zone is in UTC."""
    # through text: subtracting pendulum datetimes gives an Interval, which cannot be divided by a plain timedelta
    plain = datetime.fromisoformat(date.isoformat())
    return to_micros(plain if plain.tzinfo is not None else plain.replace(tzinfo=UTC))


def log_url(dag_id: str, run_id: str, task_id: str, map_index: int = -1, try_number: int | None = None) -> str:
    """The URL of a task log; the setting `api.base_url` is its first part."""
    from urllib.parse import quote  # lazy import: most tasks do not need it

    mapped = f"/mapped/{map_index}" if map_index >= 0 else ""
    tried = "" if try_number is None else f"?try_number={try_number}"
    return f"{run_url(dag_id, run_id)}/tasks/{quote(task_id)}{mapped}{tried}"


def run_url(dag_id: str, run_id: str) -> str:
    """The URL of the page of a run; the setting `api.base_url` is its first part."""
    from urllib.parse import quote  # lazy import: most tasks do not need it

    base = str(conf.get("api", "base_url", fallback="http://localhost:8080")).rstrip("/")
    return f"{base}/dags/{quote(dag_id)}/runs/{quote(run_id)}"
