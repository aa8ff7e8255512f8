"""What DAG files ask while a command has them read: variables and connections, from the database."""

from __future__ import annotations

from tradewind.cli import compose
from tradewind.model.errors import TradewindError
from tradewind.scheduler.questions import answer
from tradewind.settings import Settings
from tradewind.store.crypto import open_vault
from tradewind.wire.messages import Failure, Lookup, RunnerAnswer

NO_ATTEMPT = (0, 0, 0)


def from_database(settings: Settings, question: Lookup) -> RunnerAnswer:
    """The answer to a question of a DAG file; a `Failure` where the database or the key cannot be used."""
    try:
        store = compose.open_reader(settings)
        try:
            vault = open_vault(settings.secrets.fernet_key, settings.paths.fernet_key, create=False)
            return answer(store, vault, question, NO_ATTEMPT, 0)
        finally:
            store.close()
    except TradewindError as error:
        return Failure(question.op, str(error))
