"""What most commands share: reading the database, the command client, the type of dates, and the confirmation question."""

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
    from tradewind.store.port import Reader

NO_SCHEDULER = "No scheduler is running. The change takes effect when one is started (tradewind standalone)."


def command_client(settings: Settings | None = None) -> CommandClient:
    """The client with which a command changes something."""
    from tradewind.cli.command_client import CommandClient  # lazy import: commands that only read do not need it

    return CommandClient(settings if settings is not None else load())


def warn_if_no_scheduler(client: CommandClient) -> None:
    """Tell the user that the change has no effect before a scheduler is started."""
    if client.offline:
        click.echo(NO_SCHEDULER, err=True)


@contextmanager
def reading(settings: Settings | None = None) -> Iterator[Reader]:
    """Open the database for reading.

    Raises:
        NotFound: there is no database yet.
    """
    from tradewind.cli.compose.database import open_reader  # lazy import: the store is loaded when the database is read

    store = open_reader(settings if settings is not None else load())
    try:
        yield store
    finally:
        store.close()


class Moment(click.ParamType[int]):
    """A date argument, converted to microseconds since 1970 (UTC)."""

    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        from tradewind.model.moments import parse_moment  # lazy import: most commands get no date

        try:
            return parse_moment(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


MOMENT = Moment()


def find_run(store: Reader, dag_id: str, which: str | None) -> RunRow:
    """The run with this run id or logical date; None: the newest run of the DAG.

    Raises:
        NotFound: there is no such run; the message names similar run ids.
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


def confirm(question: str, yes: bool) -> None:
    """Ask the user before something is changed; with `yes` do not ask.

    Raises:
        click.Abort: the user said no.
    """
    if not yes:
        sys.stdout.flush()  # rows that are listed above the question come first, also in a pipe
        click.confirm(question, abort=True, err=True)


def isolation() -> str:
    """How tasks are separated from the services, in a sentence."""
    try:
        import pwd  # lazy import: does not exist on every system

        user = pwd.getpwuid(os.geteuid()).pw_name
    except (ImportError, KeyError):
        user = str(os.geteuid())
    return f"tasks run in their own processes as the same user ({user}): this protects against accidents, not against attacks"
