"""Asset partitions for DAG authors: mappers, windows and the schedule of a DAG that runs once for each partition key.

    daily = RollupMapper(upstream_mapper=StartOfDayMapper(), window=DayWindow())
    schedule = PartitionedAssetTimetable(assets=hourly, default_partition_mapper=daily)

Each object becomes plain values (`model.partitions`), from which the scheduler computes the keys. Names and arguments are
Airflow's.

Users may subclass `PartitionMapper` and `Window`, in a plugin or in a DAG file. A mapper with one becomes a `Custom` value:
the classes, with the results of their `serialize()`. Only a child process without credentials makes it again and calls it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from enum import Enum
from typing import Any, ClassVar

from tradewind.model import partitions as values
from tradewind.model.errors import DefinitionError
from tradewind.model.ids import DAG_FILE_MODULE
from tradewind.model.moments import from_micros, to_micros
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
    direction: Direction = Direction.FORWARD

    def __init__(self, *, direction: Window.Direction | str = Direction.FORWARD) -> None:
        self.direction = self.Direction(direction)

    def to_upstream(self, decoded_downstream: Any) -> Iterable[Any]:
        """The parts of a period, in the decoded form of the mapper of the window. A class of users has to define it."""
        return partition_keys.parts(self._value(), decoded_downstream)

    def serialize(self) -> dict[str, Any]:
        """The arguments as JSON values."""
        return {"direction": self.direction.value}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Window:
        """Make an equal window from the result of `serialize`."""
        return cls(direction=cls.Direction(data["direction"]))

    def _value(self) -> values.Window:
        raise NotImplementedError(f"{type(self).__name__} has no to_upstream(self, decoded_downstream)")


class _TimeWindow(Window):
    expected_decoded_type = datetime

    def _value(self) -> values.Window:
        unit = next(unit for kind, unit in _WINDOWS.items() if isinstance(self, kind))
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

    def serialize(self) -> dict[str, Any]:
        return {"segments": sorted(self._segments)}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Window:
        return cls(data["segments"])

    def _value(self) -> values.Window:
        return values.SegmentWindow(tuple(sorted(self._segments)))


class WaitPolicy:
    """Base of the policies of `RollupMapper`: how many keys have to come."""

    minimum: int | None = None

    def serialize(self) -> dict[str, Any]:
        """The arguments as JSON values."""
        return {} if self.minimum is None else {"n": self.minimum}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> WaitPolicy:
        """Make an equal policy from the result of `serialize`."""
        return cls(**data)

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
    """Base of mappers. A class of users defines `to_downstream`, and `serialize` and `deserialize` if it has arguments.

    Args:
        max_downstream_keys: the greatest number of keys that one event may give; the default is 1,000.
    """

    is_rollup: ClassVar[bool] = False
    expected_decoded_type: ClassVar[type] = str
    max_downstream_keys: int | None = None

    def __init__(self, *, max_downstream_keys: int | None = None) -> None:
        if max_downstream_keys is not None and (not isinstance(max_downstream_keys, int) or max_downstream_keys < 1):
            raise DefinitionError(f"max_downstream_keys is {max_downstream_keys!r}; it must be a positive integer or None")
        self.max_downstream_keys = max_downstream_keys

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        decodes = cls.decode_downstream is not PartitionMapper.decode_downstream
        if decodes != (cls.encode_upstream is not PartitionMapper.encode_upstream):
            given, missing = ("decode_downstream", "encode_upstream")[:: 1 if decodes else -1]
            raise TypeError(f"{cls.__qualname__} defines {given} without {missing}: each undoes the other, so define both")

    def _value(self) -> values.Mapper:
        raise NotImplementedError(f"{type(self).__name__} has no to_downstream(self, key)")

    def as_value(self) -> values.Mapper:
        """The mapper as a plain value.

        Raises:
            DefinitionError: a class of users inside cannot be stored, or cannot be made again.
        """
        return self._value() if _is_built_in(self) else _custom_value(self)

    def to_downstream(self, key: str) -> str | Iterable[str]:
        """The key or keys that the key of an event gives. Raises ValueError: the mapper does not accept the key."""
        return partition_keys.downstream_keys(self._value(), key)[0]

    def decode_downstream(self, downstream_key: str) -> Any:
        """The decoded value of a key of the consuming DAG: a datetime, or the key itself."""
        return downstream_key

    def encode_upstream(self, decoded: Any) -> str:
        """The key of an event for a decoded value."""
        return str(decoded)

    def to_partition_date(self, downstream_key: str) -> datetime | None:
        """The moment that a key of the consuming DAG stands for; None for a key without a date."""
        return None

    def carry_partition_date(self, source_partition_date: datetime | None) -> datetime | None:
        """The partition date of the run of a key without a date, from the partition date of the run that emitted the event."""
        return None

    def serialize(self) -> dict[str, Any]:
        """The arguments as JSON values."""
        return {} if self.max_downstream_keys is None else {"max_downstream_keys": self.max_downstream_keys}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> PartitionMapper:
        """Make an equal mapper from the result of `serialize`."""
        return cls(max_downstream_keys=data.get("max_downstream_keys"))


class IdentityMapper(PartitionMapper):
    """Gives the key of the event unchanged."""

    def carry_partition_date(self, source_partition_date: datetime | None) -> datetime | None:
        return source_partition_date

    def _value(self) -> values.Mapper:
        return values.Identity(most=self.max_downstream_keys)


class FixedKeyMapper(PartitionMapper):
    """Gives the same key for all events."""

    def __init__(self, downstream_key: str, *, max_downstream_keys: int | None = None) -> None:
        if not downstream_key or not isinstance(downstream_key, str):
            raise DefinitionError(f"FixedKeyMapper({downstream_key!r}): the key must be a text that is not empty")
        super().__init__(max_downstream_keys=max_downstream_keys)
        self.downstream_key = downstream_key

    def serialize(self) -> dict[str, Any]:
        return {**super().serialize(), "downstream_key": self.downstream_key}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> PartitionMapper:
        return cls(data["downstream_key"], max_downstream_keys=data.get("max_downstream_keys"))

    def _value(self) -> values.Mapper:
        return values.Fixed(self.downstream_key, most=self.max_downstream_keys)


class AllowedKeyMapper(PartitionMapper):
    """Gives the key of the event unchanged if it is in a list. Events with other keys are ignored."""

    def __init__(self, allowed_keys: Iterable[str], *, max_downstream_keys: int | None = None) -> None:
        super().__init__(max_downstream_keys=max_downstream_keys)
        self.allowed_keys = list(allowed_keys)

    def serialize(self) -> dict[str, Any]:
        return {**super().serialize(), "allowed_keys": self.allowed_keys}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> PartitionMapper:
        return cls(data["allowed_keys"], max_downstream_keys=data.get("max_downstream_keys"))

    def _value(self) -> values.Mapper:
        return values.Allowed(tuple(self.allowed_keys), most=self.max_downstream_keys)


class ProductMapper(PartitionMapper):
    """Splits keys of several parts, such as `eu|2026-03-01`, and applies one mapper to each part."""

    def __init__(self, *mappers: PartitionMapper, delimiter: str = "|", max_downstream_keys: int | None = None) -> None:
        _check_mappers(self, mappers)
        super().__init__(max_downstream_keys=max_downstream_keys)
        self.mappers = list(mappers)
        self.delimiter = delimiter

    def to_downstream(self, key: str) -> str | Iterable[str]:
        parts = zip(self.mappers, self._parts(key), strict=True)
        return self.delimiter.join(_one_key(mapper, part) for mapper, part in parts)

    def to_partition_date(self, downstream_key: str) -> datetime | None:
        parts = zip(self.mappers, self._parts(downstream_key), strict=True)
        dates = [found for mapper, part in parts if (found := mapper.to_partition_date(part)) is not None]
        return dates[0] if len(dates) == 1 else None

    def _parts(self, key: str) -> list[str]:
        parts = key.split(self.delimiter)
        if len(parts) != len(self.mappers):
            raise partition_keys.PartitionKeyError(
                f"{key!r} has {len(parts)} parts between {self.delimiter!r}; {len(self.mappers)} are expected"
            )
        return parts

    def serialize(self) -> dict[str, Any]:
        return {**super().serialize(), "delimiter": self.delimiter, "mappers": [encode(one) for one in self.mappers]}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> PartitionMapper:
        most = data.get("max_downstream_keys")
        return cls(*map(decode, data["mappers"]), delimiter=data["delimiter"], max_downstream_keys=most)

    def _value(self) -> values.Mapper:
        return values.Product(tuple(one._value() for one in self.mappers), self.delimiter, most=self.max_downstream_keys)


class ChainMapper(PartitionMapper):
    """Applies several mappers, one after the other."""

    def __init__(self, *mappers: PartitionMapper, max_downstream_keys: int | None = None) -> None:
        _check_mappers(self, mappers)
        super().__init__(max_downstream_keys=max_downstream_keys)
        self.mappers = list(mappers)

    def to_downstream(self, key: str) -> str | Iterable[str]:
        keys = [key]
        for mapper in self.mappers:
            keys = [made for one in keys for made in keys_of(mapper.to_downstream(one))]
        return keys[0] if len(keys) == 1 else keys

    def to_partition_date(self, downstream_key: str) -> datetime | None:
        return self.mappers[-1].to_partition_date(downstream_key)

    def serialize(self) -> dict[str, Any]:
        return {**super().serialize(), "mappers": [encode(one) for one in self.mappers]}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> PartitionMapper:
        return cls(*map(decode, data["mappers"]), max_downstream_keys=data.get("max_downstream_keys"))

    def _value(self) -> values.Mapper:
        return values.Chain(tuple(one._value() for one in self.mappers), most=self.max_downstream_keys)


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

    def decode_downstream(self, downstream_key: str) -> Any:
        return partition_keys.decoded(self._value(), downstream_key)

    def encode_upstream(self, decoded: Any) -> str:
        return partition_keys.encoded(self._value(), decoded)

    def to_partition_date(self, downstream_key: str) -> datetime | None:
        found = partition_keys.key_date(self._value(), downstream_key)
        return None if found is None else from_micros(found)

    def serialize(self) -> dict[str, Any]:
        formats = {"input_format": self.input_format, "output_format": self.output_format}
        return {**super().serialize(), "timezone": self.timezone, **formats}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> PartitionMapper:
        return cls(**data)

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

    def to_downstream(self, key: str) -> str | Iterable[str]:
        coarse = self.upstream_mapper.decode_downstream(_one_key(self.upstream_mapper, key))
        return [_text_of(self.downstream_mapper, part) for part in self.window.to_upstream(coarse)]

    def to_partition_date(self, downstream_key: str) -> datetime | None:
        return self.downstream_mapper.to_partition_date(downstream_key)

    def serialize(self) -> dict[str, Any]:
        mappers = {"upstream_mapper": encode(self.upstream_mapper), "downstream_mapper": encode(self.downstream_mapper)}
        return {**super().serialize(), **mappers, "window": encode(self.window)}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> PartitionMapper:
        return cls(
            upstream_mapper=decode(data["upstream_mapper"]),
            window=decode(data["window"]),
            downstream_mapper=decode(data["downstream_mapper"]),
            max_downstream_keys=data.get("max_downstream_keys"),
        )

    def _value(self) -> values.Mapper:
        upstream, downstream = self.upstream_mapper._value(), self.downstream_mapper._value()
        return values.FanOut(upstream, self.window._value(), downstream, most=self.max_downstream_keys)


class WrongWindow(DefinitionError, TypeError):
    """A window that does not fit its mapper. In Airflow this is a TypeError."""


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
            raise WrongWindow(
                f"RollupMapper: {type(window).__name__} needs a mapper with keys for a {window.expected_decoded_type.__name__}; "
                f"the keys of {type(upstream_mapper).__name__} are for a {upstream_mapper.expected_decoded_type.__name__}"
            )
        self.upstream_mapper = upstream_mapper
        self.window = window
        self.wait_policy = wait_policy or WaitForAll()

    def to_downstream(self, key: str) -> str | Iterable[str]:
        return self.upstream_mapper.to_downstream(key)

    def to_upstream(self, downstream_key: str) -> frozenset[str]:
        """The keys of events that make up a key of the consuming DAG."""
        decoded = self.upstream_mapper.decode_downstream(downstream_key)
        return frozenset(self.upstream_mapper.encode_upstream(part) for part in self.window.to_upstream(decoded))

    def to_partition_date(self, downstream_key: str) -> datetime | None:
        return self.upstream_mapper.to_partition_date(downstream_key)

    def serialize(self) -> dict[str, Any]:
        parts = {"upstream_mapper": encode(self.upstream_mapper), "window": encode(self.window)}
        return {**super().serialize(), **parts, "wait_policy": encode(self.wait_policy)}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> PartitionMapper:
        return cls(
            upstream_mapper=decode(data["upstream_mapper"]),
            window=decode(data["window"]),
            wait_policy=decode(data["wait_policy"]),
            max_downstream_keys=data.get("max_downstream_keys"),
        )

    def _value(self) -> values.Mapper:
        upstream, window = self.upstream_mapper._value(), self.window._value()
        return values.Rollup(upstream, window, self.wait_policy.minimum, most=self.max_downstream_keys)


# --- classes of users -----------------------------------------------------------------------------------------------------

EXPECTED_MAX = 10_000
"""Maximum number of keys of events that a run may wait for."""

Part = PartitionMapper | Window | WaitPolicy
FindClass = Callable[[str, str], Any]
"""(module, name) → class. The module is empty if the class is in the DAG file."""


def _parts_of(part: Part) -> Iterator[Part]:
    """A mapper, and the mappers, windows and policies inside."""
    yield part
    inside = (*getattr(part, "mappers", ()), *(getattr(part, name, None) for name in _PART_NAMES))
    for one in inside:
        if isinstance(one, Part):
            yield from _parts_of(one)


_PART_NAMES = ("upstream_mapper", "window", "downstream_mapper", "wait_policy")


def _is_built_in(mapper: PartitionMapper) -> bool:
    return all(type(part).__module__ == __name__ for part in _parts_of(mapper))


def encode(part: Part) -> dict[str, Any]:
    """A mapper, window or policy as JSON values. Raises DefinitionError: a class cannot be found again by its name."""
    kind = type(part)
    if kind.__module__ == __name__:
        return {"class": kind.__name__, "data": part.serialize()}
    if isinstance(part, WaitPolicy):
        raise DefinitionError(
            f"the wait policy {kind.__name__} is a class of your own; only WaitForAll and MinimumCount are allowed"
        )
    if "<locals>" in kind.__qualname__:
        raise DefinitionError(
            f"the class {kind.__qualname__} is defined inside a function; move it to the top level of its module"
        )
    module = "" if kind.__module__.startswith(DAG_FILE_MODULE) else kind.__module__
    return {"class": kind.__qualname__, "module": module, "data": part.serialize()}


_find_class: ContextVar[FindClass] = ContextVar("find_class")


def decode(data: dict[str, Any]) -> Any:
    """The mapper, window or policy of `encode`. `decode_mapper` says where the classes of users are."""
    kind = globals()[data["class"]] if "module" not in data else _find_class.get()(data["module"], data["class"])
    return kind.deserialize(data["data"])


def decode_mapper(spec: bytes, find_class: FindClass) -> PartitionMapper:
    """Make the mapper of a `Custom` value. Raises any exception of the code of users."""
    token = _find_class.set(find_class)
    try:
        made = decode(json.loads(spec))
    finally:
        _find_class.reset(token)
    if not isinstance(made, PartitionMapper):
        raise DefinitionError(f"deserialize() of a partition mapper returned {made!r}, which is no PartitionMapper")
    return made


def _custom_value(mapper: PartitionMapper) -> values.Custom:
    """The value of a mapper with classes of users. It is made again once, so that an error is shown when the file is read."""
    name = type(mapper).__name__
    classes = {type(part).__qualname__: type(part) for part in _parts_of(mapper)}
    try:
        spec = json.dumps(encode(mapper), sort_keys=True).encode()
        decode_mapper(spec, lambda module, qualname: classes[qualname])
    except DefinitionError:
        raise
    except Exception as error:
        raise DefinitionError(
            f"the partition mapper {name} cannot be stored: {type(error).__name__}: {error}. A class with arguments defines "
            "serialize(self), which returns JSON values, and the class method deserialize(cls, data)"
        ) from error
    return values.Custom(name, spec, most=mapper.max_downstream_keys)


def map_key(mapper: PartitionMapper, key: str, date: int | None) -> values.MappedKey:
    """Ask a mapper of users for the downstream keys of the key of an event. An exception of its code becomes the problem.

    Args:
        date: the partition date of the run that emitted the event, in microseconds.
    """
    name = type(mapper).__name__
    most = values.MOST_KEYS if mapper.max_downstream_keys is None else mapper.max_downstream_keys
    try:
        targets = list(dict.fromkeys(itertools.islice(keys_of(mapper.to_downstream(key)), most + 1)))
        if len(targets) > most:
            raise ValueError(f"it gives more than {most} keys, which are allowed (max_downstream_keys)")
        for target in targets:
            if not isinstance(target, str) or not target.strip() or len(target) > values.KEY_MAX:
                raise ValueError(f"it gives the key {target!r}; a key is a text with 1 to {values.KEY_MAX} characters")
        carried = mapper.carry_partition_date(None if date is None else from_micros(date))
        return values.MappedKey(tuple((target, _facts(mapper, target, carried)) for target in targets))
    except Exception as error:
        problem = f"the mapper {name} does not accept the partition key {key!r}: {type(error).__name__}: {error}"
        return values.MappedKey(problem=problem[:PROBLEM_MAX])


PROBLEM_MAX = 500
"""Maximum number of characters of the problem of a key."""


def _facts(mapper: PartitionMapper, target: str, carried: datetime | None) -> values.KeyFacts:
    date = mapper.to_partition_date(target) or carried
    moment = None if date is None else to_micros(date if date.tzinfo is not None else date.replace(tzinfo=UTC))
    if not mapper.is_rollup:
        return values.KeyFacts(date=moment)
    rollup: Any = mapper
    expected = list(dict.fromkeys(itertools.islice(rollup.to_upstream(target), EXPECTED_MAX + 1)))
    if len(expected) > EXPECTED_MAX:
        raise ValueError(f"the key {target!r} waits for more than {EXPECTED_MAX} keys")
    needed = partition_keys.needed_of(getattr(rollup, "wait_policy", WaitForAll()).minimum, len(expected))
    return values.KeyFacts(tuple(sorted(expected)), needed, moment)


def keys_of(found: str | Iterable[str]) -> Iterable[str]:
    """The result of `to_downstream` as several keys."""
    return (found,) if isinstance(found, str) else found


def _one_key(mapper: PartitionMapper, key: str) -> str:
    found = list(keys_of(mapper.to_downstream(key)))
    if len(found) != 1:
        raise TypeError(f"{type(mapper).__name__} gives {len(found)} keys here, where one is needed")
    return found[0]


def _text_of(mapper: PartitionMapper, part: Any) -> str:
    """The key of the downstream mapper of a `FanOutMapper` for a part of the window."""
    if isinstance(mapper, _StartOf):
        return partition_keys.formatted(mapper._value(), part)
    own = getattr(mapper, "format", None)
    if callable(own):
        return str(own(part))
    return part.isoformat() if isinstance(part, datetime) else str(part)


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
        """The mappers as plain values. Raises DefinitionError: a mapper of users cannot be stored."""
        names: dict[str, values.Mapper] = {}
        uris: dict[str, values.Mapper] = {}
        for given, mapper in self.partition_mapper_config.items():
            value = mapper.as_value()
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
        return values.PartitionRules(self.default_partition_mapper.as_value(), tuple(names.items()), tuple(uris.items()))
