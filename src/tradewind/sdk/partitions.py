"""Asset partitions for DAG authors: mappers, windows and the schedule of a DAG that runs once for each partition key.

    daily = RollupMapper(upstream_mapper=StartOfDayMapper(), window=DayWindow())
    schedule = PartitionedAssetTimetable(assets=hourly, default_partition_mapper=daily)

Each object becomes plain values (`model.partitions`), from which the scheduler computes the keys. Names and arguments are
Airflow's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, tzinfo
from enum import Enum
from typing import Any, ClassVar

from tradewind.model import partitions as values
from tradewind.model.errors import DefinitionError
from tradewind.model.moments import from_micros
from tradewind.sdk import open_dags
from tradewind.sdk.assets import Asset, AssetAlias, AssetRef, BaseAsset, as_condition
from tradewind.timetables import partition_keys
from tradewind.timetables.base import Timetable
from tradewind.timetables.builtin import timezone_name
from tradewind.timetables.zones import zone


class Window:
    """Base of windows: the keys that make up one key of a longer period.

    Args:
        direction: whether the period begins (FORWARD) or ends (BACKWARD) at the key.
    """

    class Direction(str, Enum):  # noqa: UP042 (as in Airflow)
        """Whether a window goes forward or backward in time."""

        FORWARD = "forward"
        BACKWARD = "backward"

    expected_decoded_type: ClassVar[type] = str

    def __init__(self, *, direction: Window.Direction | str = Direction.FORWARD) -> None:
        self.direction = self.Direction(direction)

    def to_upstream(self, decoded_downstream: Any) -> Iterable[Any]:
        """The parts of the period that begins at a moment."""
        return partition_keys.parts(self.as_value(), decoded_downstream)

    def as_value(self) -> values.Window:
        """The window as a plain value. Raises DefinitionError: the author has defined this class."""
        raise DefinitionError(f"the window {type(self).__name__} is a class of your own, which is not supported yet")


class _TimeWindow(Window):
    expected_decoded_type = datetime

    def as_value(self) -> values.Window:
        unit = _WINDOWS.get(type(self))
        if unit is None:
            return super().as_value()
        return values.TimeWindow(unit, self.direction is Window.Direction.BACKWARD)


class HourWindow(_TimeWindow):
    """The 60 minutes of an hour."""


class DayWindow(_TimeWindow):
    """The 24 hours of a day."""


class WeekWindow(_TimeWindow):
    """The seven days of a week."""


class MonthWindow(_TimeWindow):
    """The days of a month."""


class QuarterWindow(_TimeWindow):
    """The three months of a quarter."""


class YearWindow(_TimeWindow):
    """The twelve months of a year."""


_WINDOWS: dict[type, values.Unit] = {
    HourWindow: "hour",
    DayWindow: "day",
    WeekWindow: "week",
    MonthWindow: "month",
    QuarterWindow: "quarter",
    YearWindow: "year",
}


class SegmentWindow(Window):
    """A fixed set of keys."""

    def __init__(self, segments: Iterable[str]) -> None:
        super().__init__()
        found = list(dict.fromkeys(segments))
        if not found or not all(isinstance(one, str) and one for one in found):
            raise DefinitionError(f"SegmentWindow needs one or more keys, which are not empty texts; got {found!r}")
        self._segments = frozenset(found)

    def as_value(self) -> values.Window:
        return values.SegmentWindow(tuple(sorted(self._segments)))


class WaitPolicy:
    """Base of the policies of `RollupMapper`: how many keys have to come."""

    minimum: int | None = None

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.minimum == self.minimum

    def __hash__(self) -> int:
        return hash((type(self), self.minimum))


class WaitForAll(WaitPolicy):
    """All keys have to come."""


class MinimumCount(WaitPolicy):
    """At least `n` keys have to come; if `n` is negative, all but `-n` keys."""

    def __init__(self, n: int) -> None:
        if not isinstance(n, int) or n == 0:
            raise DefinitionError(f"MinimumCount({n!r}): give an integer other than 0, or use WaitForAll()")
        self.n = self.minimum = n


class PartitionMapper:
    """Base of mappers.

    Args:
        max_downstream_keys: the greatest number of keys that one event may give; the default is 1,000.
    """

    is_rollup: ClassVar[bool] = False
    expected_decoded_type: ClassVar[type] = str

    def __init__(self, *, max_downstream_keys: int | None = None) -> None:
        if max_downstream_keys is not None and (not isinstance(max_downstream_keys, int) or max_downstream_keys < 1):
            raise DefinitionError(f"max_downstream_keys is {max_downstream_keys!r}; it must be a positive integer or None")
        self.max_downstream_keys = max_downstream_keys

    def _value(self) -> values.Mapper:
        raise NotImplementedError(f"{type(self).__name__} has no to_downstream(self, key)")

    def as_value(self) -> values.Mapper:
        """The mapper as a plain value."""
        if type(self).__module__ != __name__:
            return values.Unsupported(type(self).__name__, most=self.max_downstream_keys)
        return self._value()

    def to_downstream(self, key: str) -> str | Iterable[str]:
        """The key or keys that the key of an event gives. Raises ValueError: the mapper does not accept the key."""
        found = partition_keys.downstream_keys(self._value(), key)
        return found[0] if len(found) == 1 and not isinstance(self, FanOutMapper) else found

    def decode_downstream(self, downstream_key: str) -> Any:
        """The decoded value of a key of the consuming DAG: a datetime, or the key itself."""
        return partition_keys.decoded(self._value(), downstream_key)

    def encode_upstream(self, decoded: Any) -> str:
        """The key of an event for a decoded value."""
        return partition_keys.encoded(self._value(), decoded)

    def to_partition_date(self, downstream_key: str) -> datetime | None:
        """The moment that a key of the consuming DAG stands for; None for a key without a date."""
        found = partition_keys.key_date(self._value(), downstream_key)
        return None if found is None else from_micros(found)


class IdentityMapper(PartitionMapper):
    """Gives the key of the event unchanged."""

    def _value(self) -> values.Mapper:
        return values.Identity(most=self.max_downstream_keys)


class FixedKeyMapper(PartitionMapper):
    """Gives the same key for all events."""

    def __init__(self, downstream_key: str, *, max_downstream_keys: int | None = None) -> None:
        if not downstream_key or not isinstance(downstream_key, str):
            raise DefinitionError(f"FixedKeyMapper({downstream_key!r}): the key must be a text that is not empty")
        super().__init__(max_downstream_keys=max_downstream_keys)
        self.downstream_key = downstream_key

    def _value(self) -> values.Mapper:
        return values.Fixed(self.downstream_key, most=self.max_downstream_keys)


class AllowedKeyMapper(PartitionMapper):
    """Gives the key of the event unchanged if it is in a list. Events with other keys are ignored."""

    def __init__(self, allowed_keys: Iterable[str], *, max_downstream_keys: int | None = None) -> None:
        super().__init__(max_downstream_keys=max_downstream_keys)
        self.allowed_keys = list(allowed_keys)

    def _value(self) -> values.Mapper:
        return values.Allowed(tuple(self.allowed_keys), most=self.max_downstream_keys)


class ProductMapper(PartitionMapper):
    """Splits keys of several parts, such as `eu|2026-03-01`, and applies one mapper to each part."""

    def __init__(self, *mappers: PartitionMapper, delimiter: str = "|", max_downstream_keys: int | None = None) -> None:
        _check_mappers(self, mappers)
        super().__init__(max_downstream_keys=max_downstream_keys)
        self.mappers = list(mappers)
        self.delimiter = delimiter

    def _value(self) -> values.Mapper:
        return values.Product(tuple(one.as_value() for one in self.mappers), self.delimiter, most=self.max_downstream_keys)


class ChainMapper(PartitionMapper):
    """Applies several mappers, one after the other."""

    def __init__(self, *mappers: PartitionMapper, max_downstream_keys: int | None = None) -> None:
        _check_mappers(self, mappers)
        super().__init__(max_downstream_keys=max_downstream_keys)
        self.mappers = list(mappers)

    def _value(self) -> values.Mapper:
        return values.Chain(tuple(one.as_value() for one in self.mappers), most=self.max_downstream_keys)


def _check_mappers(owner: PartitionMapper, mappers: tuple[Any, ...]) -> None:
    if len(mappers) < 2 or not all(isinstance(one, PartitionMapper) for one in mappers):
        raise DefinitionError(f"{type(owner).__name__} needs two or more partition mappers; got {mappers!r}")


class _StartOf(PartitionMapper):
    """Gives the beginning of the period that contains the moment of the key.

    Args:
        timezone: time zone of the period, and of keys without a time zone.
        input_format: format of the keys of events, for `strptime`.
        output_format: format of the keys of the consuming DAG, for `strftime`.
    """

    expected_decoded_type = datetime
    default_output_format: ClassVar[str]
    unit: ClassVar[values.Unit]

    def __init__(
        self,
        *,
        timezone: str | tzinfo = "UTC",
        input_format: str = "%Y-%m-%dT%H:%M:%S",
        output_format: str | None = None,
        max_downstream_keys: int | None = None,
    ) -> None:
        super().__init__(max_downstream_keys=max_downstream_keys)
        self.input_format = input_format
        self.output_format = output_format or self.default_output_format
        self.timezone = timezone_name(timezone)
        zone(self.timezone)  # raises ScheduleError
        if self.unit in ("week", "quarter"):
            partition_keys.key_pattern(self.output_format)  # raises ScheduleError

    def _value(self) -> values.StartOf:
        return values.StartOf(self.unit, self.timezone, self.input_format, self.output_format, most=self.max_downstream_keys)


class StartOfHourMapper(_StartOf):
    """`2026-03-13T10:42:15` → `2026-03-13T10`."""

    default_output_format, unit = "%Y-%m-%dT%H", "hour"


class StartOfDayMapper(_StartOf):
    """`2026-03-13T10:42:15` → `2026-03-13`."""

    default_output_format, unit = "%Y-%m-%d", "day"


class StartOfWeekMapper(_StartOf):
    """`2026-03-13T10:42:15` → `2026-03-09 (W11)`, the Monday."""

    default_output_format, unit = "%Y-%m-%d (W%V)", "week"


class StartOfMonthMapper(_StartOf):
    """`2026-03-13T10:42:15` → `2026-03`."""

    default_output_format, unit = "%Y-%m", "month"


class StartOfQuarterMapper(_StartOf):
    """`2026-03-13T10:42:15` → `2026-Q1`."""

    default_output_format, unit = "%Y-Q{quarter}", "quarter"


class StartOfYearMapper(_StartOf):
    """`2026-03-13T10:42:15` → `2026`."""

    default_output_format, unit = "%Y", "year"


class FanOutMapper(PartitionMapper):
    """Gives one key for each part of a window.

    Args:
        upstream_mapper: is applied to the key of the event.
        window: the parts.
        downstream_mapper: how a part becomes a key. The default depends on the window; some windows need one.
    """

    default_downstream_mapper_by_window_name: ClassVar[dict[str, type[PartitionMapper]]] = {
        "DayWindow": StartOfHourMapper,
        "WeekWindow": StartOfDayMapper,
        "MonthWindow": StartOfDayMapper,
        "QuarterWindow": StartOfMonthMapper,
        "YearWindow": StartOfMonthMapper,
    }

    def __init__(
        self,
        *,
        upstream_mapper: PartitionMapper,
        window: Window,
        downstream_mapper: PartitionMapper | None = None,
        max_downstream_keys: int | None = None,
    ) -> None:
        super().__init__(max_downstream_keys=max_downstream_keys)
        kind = self.default_downstream_mapper_by_window_name.get(type(window).__name__)
        if downstream_mapper is None and kind is None:
            raise DefinitionError(f"FanOutMapper has no default downstream_mapper for {type(window).__name__}; give one")
        self.upstream_mapper = upstream_mapper
        self.window = window
        self.downstream_mapper = downstream_mapper or (kind or IdentityMapper)()

    def _value(self) -> values.Mapper:
        upstream, downstream = self.upstream_mapper.as_value(), self.downstream_mapper.as_value()
        return values.FanOut(upstream, self.window.as_value(), downstream, most=self.max_downstream_keys)


class RollupMapper(PartitionMapper):
    """Gives one key for all parts of a window. The run waits until the parts have come.

    Args:
        upstream_mapper: gives the key of the consuming DAG.
        window: the parts.
        wait_policy: how many parts have to come; all by default.
    """

    is_rollup = True

    def __init__(
        self,
        *,
        upstream_mapper: PartitionMapper,
        window: Window,
        wait_policy: WaitPolicy | None = None,
        max_downstream_keys: int | None = None,
    ) -> None:
        super().__init__(max_downstream_keys=max_downstream_keys)
        if upstream_mapper.expected_decoded_type is not window.expected_decoded_type:
            raise DefinitionError(
                f"RollupMapper: {type(window).__name__} needs a mapper with keys for a {window.expected_decoded_type.__name__}; "
                f"the keys of {type(upstream_mapper).__name__} are for a {upstream_mapper.expected_decoded_type.__name__}"
            )
        self.upstream_mapper = upstream_mapper
        self.window = window
        self.wait_policy = wait_policy or WaitForAll()

    def _value(self) -> values.Mapper:
        upstream, window = self.upstream_mapper.as_value(), self.window.as_value()
        return values.Rollup(upstream, window, self.wait_policy.minimum, most=self.max_downstream_keys)

    def to_upstream(self, downstream_key: str) -> frozenset[str]:
        """The keys of events that make up a key of the consuming DAG."""
        value = self._value()
        assert isinstance(value, values.Rollup)
        return partition_keys.expected_keys(value, downstream_key)


class AssetTriggeredTimetable:
    """A schedule on assets, like a list of assets. A call returns the assets as a schedule."""

    def __new__(cls, assets: Any) -> Any:
        return assets


class PartitionedAssetTimetable(Timetable):
    """A DAG that runs once for each partition key, when the events of its assets have come for this key.

    Args:
        assets: an asset or a condition.
        partition_mapper_config: asset → its mapper.
        default_partition_mapper: the mapper of all other assets.
    """

    partitioned = True

    def __init__(
        self,
        *,
        assets: Any,
        partition_mapper_config: Mapping[BaseAsset, PartitionMapper] | None = None,
        default_partition_mapper: PartitionMapper | None = None,
    ) -> None:
        self.asset_condition = as_condition(assets)
        self.partition_mapper_config = dict(partition_mapper_config or {})
        self.default_partition_mapper = default_partition_mapper or IdentityMapper()
        for one in (*self.partition_mapper_config.values(), self.default_partition_mapper):
            if not isinstance(one, PartitionMapper):
                raise DefinitionError(f"PartitionedAssetTimetable needs partition mappers; {one!r} is a {type(one).__name__}")

    @property
    def summary(self) -> str:
        return "Partitioned Asset"

    def rules(self) -> values.PartitionRules:
        """The mappers as plain values. Warns about mappers that are not supported."""
        names: dict[str, values.Mapper] = {}
        uris: dict[str, values.Mapper] = {}
        for given, mapper in self.partition_mapper_config.items():
            value = _value_of(mapper)
            if isinstance(given, AssetAlias):
                open_dags.warn_author(
                    f"PartitionedAssetTimetable: {given!r} in partition_mapper_config has no effect, as in Airflow"
                )
            for one in [given] if isinstance(given, AssetRef) else [asset for _, asset in given.iter_assets()]:
                assert isinstance(one, Asset | AssetRef)
                if one.name:
                    names[one.name] = value
                if one.uri:
                    uris[one.uri] = value
        return values.PartitionRules(_value_of(self.default_partition_mapper), tuple(names.items()), tuple(uris.items()))


def _value_of(mapper: PartitionMapper) -> values.Mapper:
    try:
        value = mapper.as_value()
    except DefinitionError as error:
        open_dags.warn_author(f"{type(mapper).__name__}: {error}. Events of its assets start no runs")
        return values.Unsupported(type(mapper).__name__, most=mapper.max_downstream_keys)
    for name in sorted(unsupported(value)):
        open_dags.warn_author(f"the partition mapper {name} is not supported yet. Events of its assets start no runs")
    return value


def unsupported(value: values.Mapper) -> set[str]:
    """The names of the classes inside a mapper that are not supported."""
    if isinstance(value, values.Unsupported):
        return {value.name}
    if isinstance(value, values.Product | values.Chain):
        return set[str]().union(*map(unsupported, value.of))
    if isinstance(value, values.FanOut):
        return unsupported(value.upstream) | unsupported(value.downstream)
    return unsupported(value.upstream) if isinstance(value, values.Rollup) else set()
