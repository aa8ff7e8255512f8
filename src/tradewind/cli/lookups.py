"""What users' code asks while a command has it read or run: variables, connections and XComs, from the database."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from tradewind.cli import compose
from tradewind.model.errors import NotFound, TradewindError
from tradewind.model.secret_names import told_secrets
from tradewind.scheduler.attempts.task_requests import answer
from tradewind.settings import Settings
from tradewind.store.crypto import open_vault
from tradewind.wire.messages import Failure, GetConnection, GetVariable, Lookup, RunnerAnswer, Value, XComPull
from tradewind.wire.runtime import Question

NO_ATTEMPT = (0, 0, 0)


def from_database(settings: Settings, question: Lookup | XComPull) -> RunnerAnswer:
    """The answer to a question of users' code; a `Failure` where the database or the key cannot be used."""
    try:
        store = compose.open_reader(settings)
        try:
            vault = open_vault(settings.secrets.fernet_key, settings.paths.fernet_key, create=False)
            return answer(store, vault, question, NO_ATTEMPT, 0)
        finally:
            store.close()
    except TradewindError as error:
        return Failure(question.op, str(error))


class Deployment:
    """What a run in this process reads from the home folder: see `testing.inline_runtime.Outside`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        compose.use_secret_names(settings)
        self.run: tuple[str, str] | None = None
        """DAG id and run id of the run whose XComs the run in this process sees as its own."""

        self.secrets: list[str] = []
        """What was told and must not be shown."""

    def ask(self, question: Question) -> RunnerAnswer:
        """Answer from the database; a `Failure` where the database or the key cannot be used, or it is no question for it."""
        if not isinstance(question, GetVariable | GetConnection | XComPull):
            return Failure(question.op, f"{type(question).__name__} can be asked only inside a task")
        if isinstance(question, XComPull) and self.run is not None and question.dag_id == self.run[0]:
            question = msgspec.structs.replace(question, run_id=self.run[1])
        found = from_database(self._settings, question)
        if isinstance(found, Value):
            self.secrets += told_secrets(found.value, found.secret)
        return found

    def read_spill(self, name: str) -> bytes:
        """Raises NotFound."""
        try:
            return (Path(self._settings.paths.xcom) / os.path.basename(name)).read_bytes()
        except FileNotFoundError:
            raise NotFound(f"the file of a large XCom is gone: {name} in {self._settings.paths.xcom}") from None


def deployment(settings: Settings, wanted: bool = True) -> Deployment | None:
    """The home folder's, where that has a database and it is wanted."""
    return Deployment(settings) if wanted and os.path.exists(settings.paths.database) else None
