"""What most commands need: the settings, a reader of the database, the door to the scheduler, dates, and a question."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from tradewind.settings import Settings, load

if TYPE_CHECKING:
    from tradewind.cli.command_client import CommandClient
    from tradewind.model.rows import RunRow
    from tradewind.store.sql.store import SqliteStore

NO_SCHEDULER = "No scheduler is running: it takes effect when one is started (tradewind standalone)."


def home_lock(settings: Settings) -> str:
    """The file that a living `standalone` holds locked."""
    return os.path.join(settings.paths.run, "standalone.lock")


def door(settings: Settings | None = None) -> CommandClient:
    """The way to change something."""
    from tradewind.cli.command_client import CommandClient  # lazy door: reading commands do without it

    return CommandClient(settings if settings is not None else load())


def say_if_offline(way: CommandClient) -> None:
    """Tell whoever waits for an effect that nobody is there to bring it about."""
    if way.offline:
        click.echo(NO_SCHEDULER, err=True)


@contextmanager
def reading(settings: Settings | None = None) -> Iterator[SqliteStore]:
    """The database, for looking.

    Raises:
        NotFound: there is none yet.
    """
    from tradewind.cli import compose  # lazy door: the store is loaded when something is read

    store = compose.open_reader(settings if settings is not None else load())
    try:
        yield store
    finally:
        store.close()


class Moment(click.ParamType[int]):
    """A date, as microseconds."""

    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        from tradewind.model.moments import parse_moment  # lazy door: most commands are given no date

        try:
            return parse_moment(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


MOMENT = Moment()


def find_run(store: SqliteStore, dag_id: str, which: str | None) -> RunRow:
    """A run by its id or its logical date; None: the newest one.

    Raises:
        NotFound: there is none, with the nearest names.
    """
    from tradewind.model.errors import NotFound
    from tradewind.model.moments import parse_moment

    store.need_dag(dag_id)
    if which is None:
        newest = store.list_runs(dag_id, limit=1, order_by=("-id",)).rows
        if not newest:
            raise NotFound(f"DAG {dag_id} has no runs yet. Trigger one: tradewind dags trigger {dag_id}")
        return store.need_run(dag_id, newest[0].dag_run_id)
    found = store.find_run(dag_id, which)
    if found is None:
        try:
            date = parse_moment(which)
        except ValueError:
            return store.need_run(dag_id, which)
        found = store.previous_run(dag_id, date + 1, scheduled_only=False)
        if found is None or found.logical_date != date:
            raise NotFound(f"DAG {dag_id} has no run with the id or the logical date {which!r}")
    return found


def sure(question: str, yes: bool) -> None:
    """Ask before something is changed; `yes` answers.

    Raises:
        click.Abort: no.
    """
    if not yes:
        sys.stdout.flush()  # what is asked about stands above the question, also in a pipe
        click.confirm(question, abort=True, err=True)


def isolation() -> str:
    """Which wall stands between tasks and us, in words."""
    try:
        import pwd  # lazy door: not on every system

        user = pwd.getpwuid(os.geteuid()).pw_name
    except (ImportError, KeyError):
        user = str(os.geteuid())
    return f"tasks run in processes of their own as the same user ({user}): a guard against accident, not against malice"
