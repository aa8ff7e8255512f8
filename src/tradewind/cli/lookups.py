"""Answers requests of user code that runs inside a command: variables, connections and XComs, read from the database."""

from __future__ import annotations

import msgspec

from tradewind.cli.compose.database import open_reader
from tradewind.cli.compose.user_code import use_secret_names
from tradewind.cli.lost_database import database_exists, refuse_lost
from tradewind.model.errors import NotFound, TradewindError
from tradewind.model.secret_names import secrets_in
from tradewind.scheduler.attempts.task_requests import answer_from_reader
from tradewind.settings import Settings
from tradewind.storage.local_spills import LocalSpills
from tradewind.store.crypto import open_vault
from tradewind.wire.empty_database import answer_from_nothing
from tradewind.wire.messages import Failure, GetConnection, GetVariable, ListRows, Lookup, RunnerAnswer, Value, XComPull
from tradewind.wire.runtime import Question


def from_database(settings: Settings, question: Lookup | XComPull) -> RunnerAnswer:
    """Answer a request of user code; a `Failure` if the database or the key cannot be read.

    A database that does not exist yet has no variables and connections: people examine their DAG files before the first start.
    """
    try:
        if not database_exists(settings):
            refuse_lost(settings)
            return answer_from_nothing(question)
        store = open_reader(settings)
        try:
            vault = open_vault(settings.secrets.fernet_key, settings.paths.fernet_key, create=False)
            return answer_from_reader(store, vault, question)
        finally:
            store.close()
    except TradewindError as error:
        return Failure(question.op, str(error))


class Deployment:
    """Answers requests of a DAG run in this process from the home folder (implements `testing.inline_runtime.Outside`)."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        use_secret_names(settings)
        self.run: tuple[str, str] | None = None
        """DAG id and run id of the stored run whose XComs the DAG run in this process reads as its own."""

        self.secrets: list[str] = []
        """Secret values in answers so far; they must be masked in output."""

    def ask(self, question: Question) -> RunnerAnswer:
        """Answer from the database; a `Failure` if the database or the key cannot be read, or for other kinds of requests."""
        if not isinstance(question, GetVariable | GetConnection | ListRows | XComPull):
            return Failure(question.op, f"{type(question).__name__} is possible only inside a task")
        if isinstance(question, XComPull) and self.run is not None and question.dag_id == self.run[0]:
            question = msgspec.structs.replace(question, run_id=self.run[1])
        found = from_database(self._settings, question)
        if isinstance(found, Value):
            self.secrets += secrets_in(found.value, found.secret)
        return found

    def read_spill(self, name: str) -> bytes:
        """Content of the file of a large XCom. Raises NotFound if the file is missing."""
        try:
            return LocalSpills(self._settings.paths.xcom).read(name)
        except FileNotFoundError:
            raise NotFound(f"the file of a large XCom is missing: {name} in {self._settings.paths.xcom}") from None


def deployment(settings: Settings, wanted: bool = True) -> Deployment | None:
    """The lookups of the home folder; None if it has no database, or if they are not wanted."""
    return Deployment(settings) if wanted and database_exists(settings) else None
