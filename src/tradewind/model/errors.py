"""The tree of errors.

    TradewindError
     ├─ ConfigError             a setting is unknown or has a value it cannot have
     ├─ DefinitionError         a DAG file contains a contradiction or an impossible value
     │   ├─ UnknownArgument     a misspelt argument, with the nearest valid name
     │   ├─ NotYetSupported     a name whose behaviour is not built yet
     │   ├─ CycleError          tasks that wait for each other
     │   └─ DuplicateTaskId
     ├─ ScheduleError           a schedule that cannot be read (cron expression, time zone)
     ├─ NotFound                no DAG, run, task, pool … of that name, with the nearest one
     │   └─ NotReadYet          no DAG of that name, but DAG files are still being read
     ├─ Conflict                the object exists already, or its state forbids the operation
     │   └─ Changed             the object changed meanwhile: nothing was written, try again
     ├─ WrongArgument           an argument of a command is missing, or has a type or value that it cannot have
     ├─ Stale                   a guarded write found a newer state: nothing was written
     ├─ StoreError              the database cannot be used now
     │   ├─ StoreBusy           another process holds it
     │   ├─ StoreFull           the disk or the configured page limit is full
     │   ├─ StoreUnwritable     it cannot be written: permissions, a read-only disk
     │   ├─ StoreUnreachable    its server does not answer, or closed the connection
     │   ├─ StoreInterrupted    a statement was interrupted because it took too long
     │   ├─ StoreRefused        the data contradicts what the database has; trying again does not help
     │   ├─ StoreLost           its file is gone, empty or replaced
     │   └─ StoreMismatch       its schema is older or newer than this program
     ├─ InternalError           a bug in Tradewind; a log has the traceback
     │   └─ StatementError      the database does not understand one of our statements
     ├─ WireError               a message that cannot be understood
     ├─ LoginRefused            somebody is known, but may not log in
     └─ Unreachable             the other process did not answer in time

Raise a class without subclasses; catch any class. Messages say what, where, the value, and the nearest valid choice.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class TradewindError(Exception):
    """Base of all errors that Tradewind raises on purpose."""


class ConfigError(TradewindError):
    """A setting is unknown or has a value it cannot have."""


class DefinitionError(TradewindError):
    """A DAG file contains a contradiction or an impossible value."""


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
    """There is no object of that name.

    Args:
        kind: the kind of object, where a caller needs it: `DAG`. Errors that come from another process have no kind.
    """

    def __init__(self, message: str = "", kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind


class NotReadYet(NotFound):
    """There is no DAG of that name, but DAG files are still being read, so that there may be one soon."""


class Conflict(TradewindError):
    """The object exists already, or its state forbids the operation."""


class WrongConf(Conflict):
    """The conf of a run does not fit the params of its DAG."""


class WrongName(Conflict):
    """The name of an object, or the partition key of a run, is one that it may not have."""


class Protected(Conflict):
    """The object belongs to the system and cannot be deleted."""


class NoDates(Conflict):
    """The schedule of the DAG has no dates that are known before."""


class WrongBackfill(Conflict):
    """The dates or the options of a backfill do not fit each other, or do not fit the DAG."""


class RunTypeNotAllowed(Conflict):
    """The DAG does not allow runs of this type (`allowed_run_types`)."""


class Changed(Conflict):
    """A guarded edit found another state than it was computed from: nothing was written. The caller may try again."""


class WrongArgument(TradewindError):
    """An argument of a command is missing, or has a type or value that it cannot have."""


class Stale(TradewindError):
    """A guarded write found a newer state: nothing was written."""


class StoreError(TradewindError):
    """The database cannot be used now."""


class StoreBusy(StoreError):
    """Another process holds the database."""


class StoreFull(StoreError):
    """The disk, or the configured page limit, is full."""


class StoreUnwritable(StoreError):
    """The database cannot be opened, or only for reading: permissions, a disk that is mounted read-only."""


class StoreUnreachable(StoreError):
    """The server of the database does not answer, refuses the connection, or has closed it."""


class StoreInterrupted(StoreError):
    """A statement was interrupted because it took too long."""


class StoreRefused(StoreError):
    """The database works but refuses the data: the data contradicts what the database has."""


class StoreLost(StoreError):
    """The file of the database was deleted, emptied or replaced."""


class StoreMismatch(StoreError):
    """The schema is older or newer than this program."""


class InternalError(TradewindError):
    """A bug in Tradewind, not an error of the caller or of the machine."""


class StatementError(InternalError):
    """The database works but does not understand one of our statements. Trying again does not help."""


class WireError(TradewindError):
    """A message that cannot be understood."""


class LoginRefused(TradewindError):
    """An identity provider or a directory knows the person, but the person may not log in here."""


class Unreachable(TradewindError):
    """The other process did not answer in time."""


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """Return the valid choice closest to a misspelt `name`, or None if none is close."""
    found = difflib.get_close_matches(name, list(choices), n=1, cutoff=0.6)
    return found[0] if found else None


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return " Did you mean …?" with a leading blank, or an empty string, to be appended to a sentence."""
    found = nearest(name, choices)
    return f" Did you mean {found!r}?" if found else ""
