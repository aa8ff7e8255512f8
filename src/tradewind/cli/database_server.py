"""PostgreSQL's own programs: pg_dump, pg_restore and psql, for the database that `database.url` names.

The password is passed in the environment, never on the command line, which every user of the machine can read.
"""

from __future__ import annotations

import os
import shutil
import subprocess

from tradewind.model.database_urls import client_url, password_of
from tradewind.model.errors import NotFound, StoreError
from tradewind.settings import Settings

SCHEMA = "tradewind"
"""The schema of Tradewind's tables."""


def program(name: str) -> str:
    """The path of one of PostgreSQL's programs. Raises NotFound: it is not installed."""
    found = shutil.which(name)
    if found is None:
        raise NotFound(f"the program {name} is not installed (Debian: apt install postgresql-client)")
    return found


def address(settings: Settings) -> tuple[str, dict[str, str]]:
    """The URL for a command line, and the environment with its password."""
    from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

    url = client_url(settings.store)
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    query = urlencode([pair for pair in parse_qsl(parts.query) if pair[0] != "password"], safe="/")
    shown = urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}{at}{host}", query=query))
    if not parts.netloc:  # urlunsplit would leave the slashes out
        shown = f"postgresql://{parts.path}{'?' + query if query else ''}"
    password = password_of(settings.store)
    return shown, {**os.environ, **({"PGPASSWORD": password} if password else {})}


def back_up(settings: Settings, file: str) -> None:
    """Write the tables of Tradewind into a new file, also while services run. Raises StoreError."""
    url, environment = address(settings)
    _run(
        [program("pg_dump"), "--format=custom", "--no-owner", f"--schema={SCHEMA}", f"--file={file}", f"--dbname={url}"],
        environment,
    )


def restore(settings: Settings, file: str) -> None:
    """Replace the tables of Tradewind by those of a backup, in one transaction. Raises StoreError."""
    url, environment = address(settings)
    command = [program("pg_restore"), "--no-owner", "--single-transaction", "--exit-on-error", "--clean", "--if-exists"]
    _run([*command, f"--dbname={url}", file], environment)


def is_backup(file: str) -> bool:
    """Whether a file is one of pg_dump's. Raises StoreError: it cannot be read."""
    try:
        with open(file, "rb") as content:
            return content.read(5) == b"PGDMP"
    except OSError as error:
        raise StoreError(f"{file} cannot be read: {error.strerror}") from None


def shell(settings: Settings, sql: str) -> None:
    """Replace this process by a read-only psql. With SQL, psql executes the SQL and ends."""
    url, environment = address(settings)
    environment["PGOPTIONS"] = f"-c default_transaction_read_only=on -c search_path={SCHEMA}"
    path = program("psql")
    os.execve(path, [path, url, *(["-c", sql] if sql else [])], environment)


def _run(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise StoreError(f"{os.path.basename(command[0])} failed: {done.stderr.strip() or f'exit code {done.returncode}'}")
