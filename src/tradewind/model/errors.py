"""The family of errors.

    TradewindError
     ├─ ConfigError             a setting is unknown or has a value it cannot have
     ├─ DefinitionError         a DAG file says something that cannot be
     │   ├─ UnknownArgument     a misspelt argument, with the nearest valid name
     │   ├─ NotYetSupported     a name whose behaviour is not built yet
     │   ├─ CycleError          tasks that wait for each other
     │   └─ DuplicateTaskId
     ├─ ScheduleError           a schedule that cannot be read (cron expression, time zone)
     ├─ NotFound                no DAG, run, task, pool … of that name, with the nearest one
     ├─ Conflict                the thing exists already, or is in a state that forbids this
     │   └─ Changed             it is not what it was when this was decided: nothing was written, ask again
     ├─ WrongArgument           an argument of a command is missing, or has a type or value that it cannot have
     ├─ Stale                   a guarded write met a newer state: nothing was written
     ├─ StoreError              the database cannot be used now
     │   ├─ StoreBusy           another process holds it
     │   ├─ StoreFull           the disk or the configured page limit is full
     │   ├─ StoreUnwritable     it can be read at most: permissions, a read-only disk
     │   ├─ StoreInterrupted    a statement was given up because it took too long
     │   ├─ StoreRefused        what was to be written contradicts what is there; trying again does not help
     │   ├─ StoreLost           its file is gone, empty or replaced
     │   └─ StoreMismatch       its schema is older or newer than this program
     ├─ InternalError           a bug in Tradewind; its place is in a log
     │   └─ StatementError      the database does not understand a statement of ours
     ├─ WireError               a message that cannot be understood
     └─ Unreachable             the other process did not answer in time

Raise the leaf, catch the branch. Messages say what, where, the value, and the nearest valid choice.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class TradewindError(Exception):
    """Base of everything Tradewind raises on purpose."""


class ConfigError(TradewindError):
    """A setting is unknown or has a value it cannot have."""


class DefinitionError(TradewindError):
    """A DAG file says something that cannot be."""


class UnknownArgument(DefinitionError, TypeError):
    """A misspelt argument."""


class NotYetSupported(DefinitionError):
    """A known name whose behaviour is not built yet. Nothing is silently ignored."""


class CycleError(DefinitionError):
    """Tasks that wait for each other."""


class DuplicateTaskId(DefinitionError):
    """Two tasks of one DAG have the same id."""


class ScheduleError(DefinitionError, ValueError):
    """A schedule that cannot be read."""


class NotFound(TradewindError, LookupError):
    """Nothing of that name."""


class Conflict(TradewindError):
    """It exists already, or its state forbids this."""


class Changed(Conflict):
    """A guarded edit met another state than it was decided from: nothing of it was written. Whoever asks again looks anew."""


class WrongArgument(TradewindError):
    """An argument of a command is missing, or has a type or value that it cannot have."""


class Stale(TradewindError):
    """A guarded write met a newer state: nothing was written."""


class StoreError(TradewindError):
    """The database cannot be used now."""


class StoreBusy(StoreError):
    """Another process holds the database."""


class StoreFull(StoreError):
    """The disk, or the configured page limit, is full."""


class StoreUnwritable(StoreError):
    """It cannot be opened, or only for reading: permissions, a disk that is mounted read-only."""


class StoreInterrupted(StoreError):
    """A statement was given up because it took too long."""


class StoreRefused(StoreError):
    """The database works, but does not take this: it contradicts what is there."""


class StoreLost(StoreError):
    """The file of the database is gone, empty, or another one than before."""


class StoreMismatch(StoreError):
    """The schema is older or newer than this program."""


class InternalError(TradewindError):
    """A bug in Tradewind, not of whoever asked and not of the machine."""


class StatementError(InternalError):
    """The database works, and does not understand a statement of ours. Trying again does not help."""


class WireError(TradewindError):
    """A message that cannot be understood."""


class Unreachable(TradewindError):
    """The other process did not answer in time."""


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """The valid choice closest to a misspelt `name`, or None when none is close."""
    found = difflib.get_close_matches(name, list(choices), n=1, cutoff=0.6)
    return found[0] if found else None


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """' Did you mean …?' with a leading blank, or an empty string: to be put behind a sentence."""
    found = nearest(name, choices)
    return f" Did you mean {found!r}?" if found else ""
