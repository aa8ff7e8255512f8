"""Asset partitions as plain values: how a partition key of an asset event becomes the keys of the runs of a consuming DAG.

A key is a text, such as `2026-03-01` or `eu|2026-03-01T10:00:00`. A mapper translates the key of an event (upstream) into keys of
the consuming DAG (downstream). `timetables.partition_keys` does the translation.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

KEY_MAX = 250
"""Maximum number of characters of a partition key, as in Airflow."""
MOST_KEYS = 1000
"""Maximum number of keys that one event may give a DAG if its mapper does not say: Airflow's default."""

Unit = Literal["hour", "day", "week", "month", "quarter", "year"]


class TimeWindow(msgspec.Struct, frozen=True, omit_defaults=True, tag="time"):
    """The parts of a period: the minutes of an hour, the hours of a day, the days of a week or month, the months of a year."""

    unit: Unit
    backward: bool = False
    """True: the period ends at the key; False: it begins there."""


class SegmentWindow(msgspec.Struct, frozen=True, tag="segments"):
    """A fixed set of keys."""

    segments: tuple[str, ...]


Window = TimeWindow | SegmentWindow


class Identity(msgspec.Struct, frozen=True, omit_defaults=True, tag="identity"):
    """The same key."""

    most: int | None = None
    """Maximum number of keys that one event may give; None: `MOST_KEYS`. The same in all mappers."""


class Fixed(msgspec.Struct, frozen=True, omit_defaults=True, tag="fixed"):
    """One key for all events."""

    key: str
    most: int | None = None


class Allowed(msgspec.Struct, frozen=True, omit_defaults=True, tag="allowed"):
    """The same key, if it is in the list."""

    keys: tuple[str, ...]
    most: int | None = None


class StartOf(msgspec.Struct, frozen=True, omit_defaults=True, tag="start"):
    """The beginning of the period that contains the moment in the key."""

    unit: Unit
    timezone: str
    input_format: str
    output_format: str
    most: int | None = None


class Product(msgspec.Struct, frozen=True, omit_defaults=True, tag="product"):
    """A key of several parts, each with its own mapper."""

    of: tuple[Mapper, ...]
    delimiter: str = "|"
    most: int | None = None


class Chain(msgspec.Struct, frozen=True, omit_defaults=True, tag="chain"):
    """Mappers that are applied one after the other."""

    of: tuple[Mapper, ...]
    most: int | None = None


class FanOut(msgspec.Struct, frozen=True, omit_defaults=True, tag="fan_out"):
    """One key for each part of a window."""

    upstream: Mapper
    window: Window
    downstream: Mapper
    most: int | None = None


class Rollup(msgspec.Struct, frozen=True, omit_defaults=True, tag="rollup"):
    """One key for all parts of a window: the run waits until enough of the parts have arrived."""

    upstream: Mapper
    window: Window
    minimum: int | None = None
    """How many parts must arrive; negative: how many may be missing; None: all must arrive."""
    most: int | None = None


class Unsupported(msgspec.Struct, frozen=True, omit_defaults=True, tag="unsupported"):
    """In definitions of earlier versions: a mapper class that is not Tradewind's. It gives no keys."""

    name: str
    most: int | None = None


class Custom(msgspec.Struct, frozen=True, omit_defaults=True, tag="custom"):
    """A mapper that is, or contains, a class of users. Only a child process without credentials runs it."""

    name: str
    spec: bytes
    """The classes and their arguments, as canonical JSON (`sdk.partitions.encode`)."""
    most: int | None = None


Mapper = Identity | Fixed | Allowed | StartOf | Product | Chain | FanOut | Rollup | Unsupported | Custom


class KeyFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a mapper of users said about a downstream key when an event of its asset was mapped to it."""

    expected: tuple[str, ...] | None = None
    """The keys of events that make up the key, sorted; None: the run does not wait for several keys."""
    needed: int = 1
    """How many of the expected keys must arrive."""
    date: int | None = None
    """The moment of the key in microseconds."""


class MappedKey(msgspec.Struct, frozen=True, omit_defaults=True):
    """The downstream keys that a mapper of users gives for the key of an event."""

    targets: tuple[tuple[str, KeyFacts], ...] = ()
    problem: str | None = None
    """Why there are none, in a sentence."""


class UnmappedEvent(NamedTuple):
    """An event that waits for a mapper of users."""

    event: int
    name: str
    uri: str
    """Of its asset."""
    key: str
    date: int | None
    """The partition date of the run that emitted the event."""


class PartitionRules(msgspec.Struct, frozen=True, omit_defaults=True):
    """The mapper of each asset of a schedule."""

    default: Mapper = Identity()
    by_name: tuple[tuple[str, Mapper], ...] = ()
    by_uri: tuple[tuple[str, Mapper], ...] = ()

    @property
    def has_custom(self) -> bool:
        """Whether there is a mapper of users."""
        return any(isinstance(mapper, Custom) for mapper in (self.default, *(one for _, one in (*self.by_name, *self.by_uri))))

    def mapper(self, name: str, uri: str) -> Mapper:
        """Return the mapper of an asset."""
        for known, mapper in self.by_name:
            if name and known == name:
                return mapper
        for known, mapper in self.by_uri:
            if uri and known == uri:
                return mapper
        return self.default


class CronPartition(msgspec.Struct, frozen=True, omit_defaults=True):
    """The partition of a run of a cron expression: the moment `offset` ticks after the run's moment, in the format `key_format`."""

    key_format: str = "%Y-%m-%dT%H:%M:%S"
    offset: int = 0
