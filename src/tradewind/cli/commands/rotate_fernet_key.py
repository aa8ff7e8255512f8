"""`tradewind rotate-fernet-key`."""

from __future__ import annotations

import click

from tradewind.cli.common import command_client, reading, warn_if_no_scheduler
from tradewind.cli.progress import progress
from tradewind.model.counts import counted
from tradewind.model.errors import StoreBusy
from tradewind.settings import load


@click.command("rotate-fernet-key")
def rotate_fernet_key() -> None:
    """Encrypt all variables and connections with the newest key.

    Before this, put the new key before the old key: as the first line of the key file, or first in secrets.fernet_key. Then restart
    the scheduler, so that it encrypts with the new key.
    """
    from tradewind.cli.connection_fields import decrypted_fields
    from tradewind.store.crypto import open_vault
    from tradewind.wire import commands as c

    settings = load()
    vault = open_vault(settings.secrets.fernet_key, settings.paths.fernet_key)

    def stale(stored: bytes | None) -> bool:
        return stored is not None and vault.needs_rotation(stored.decode())

    with reading(settings) as store:
        variables = [row for row in store.variables() if not row.is_encrypted or stale(row.value)]
        connections = [row for row in store.connections() if stale(row.password) or stale(row.extra)]
    client = command_client(settings)
    with progress("Encrypting", len(variables) + len(connections)) as bar:
        for row in variables:
            value = row.value.decode()
            plain = vault.decrypt(value, f"variable {row.key!r}") if row.is_encrypted else value
            client.call(c.SetVariable(row.key, plain, row.description))
            bar.advance()
        for connection in connections:
            client.call(c.SetConnection(connection.conn_id, **decrypted_fields(settings, connection)))
            bar.advance()
    with reading(settings) as store:
        left = sum(stale(row.value) for row in store.variables())
        left += sum(stale(row.password) or stale(row.extra) for row in store.connections())
    if left:
        raise StoreBusy(
            f"an older key is still used for {counted(left, 'value')}, because the scheduler does not know the new key; "
            "restart the scheduler"
        )
    if not variables and not connections:
        click.echo(
            f"Nothing to do: every variable and connection is encrypted with the newest key, {vault.key_ids[0]}. To use a new key, "
            f"make it the first line of {settings.paths.fernet_key}, or put it first in secrets.fernet_key, and restart the "
            "scheduler."
        )
        return
    done = f"{counted(len(variables), 'variable')} and {counted(len(connections), 'connection')}"
    click.echo(f"Encrypted {done} with key {vault.key_ids[0]}.")
    warn_if_no_scheduler(client)
