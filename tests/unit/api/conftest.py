"""An application over a real store. The operations of the store replace the scheduler."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tests.commands import WORKER, arguments, ping_result
from tests.unit.scheduler.bench import DEFAULTS
from tradewind.api.app import create_app, create_services
from tradewind.api.auth.passwords import hash_password
from tradewind.api.config import ApiConfig
from tradewind.api.event_hub import EventHub
from tradewind.bundles.specs import BundleSpec, VersionedBundle
from tradewind.model.definition import DagDefinition, TaskDefinition, encode_definition, version_hash
from tradewind.model.errors import Unreachable
from tradewind.model.rows import NewRun, ParsedDag, ParsedFile, RunRow
from tradewind.model.states import RunType
from tradewind.platform.clock import Clock, ManualClock
from tradewind.scheduler.commands.handler import Commands
from tradewind.scheduler.config import SchedulerConfig
from tradewind.scheduler.explain.questions import QUESTIONS, ask
from tradewind.store.crypto import open_vault
from tradewind.store.factory import open_store
from tradewind.store.port.accounts import AccountStore
from tradewind.wire.commands import Command, Ping, name_of, receive, request_for, result_for, result_of

PASSWORD = "correct horse"
ROLES = ("viewer", "user", "op", "admin")


@pytest.fixture(scope="session")
def password_hash() -> str:
    return hash_password(PASSWORD)


class FakeControl:
    """Executes commands with the handlers of the scheduler, and records them. `gone`: there is no scheduler."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.calls: list[tuple[str, str | None, dict[str, Any]]] = []
        self.gone = False
        self.trouble: str | None = None
        self.workers: list[dict[str, Any]] = [WORKER]

    def close(self) -> None: ...

    def call(
        self, asked: Command[Any], /, *, actor: str | None = None, timeout: float | None = None, op: str | None = None
    ) -> Any:
        if self.gone:
            raise Unreachable("There is no live scheduler at /run/s.sock. Start one with: tradewind standalone")
        now = self.world.clock.wall()
        if isinstance(asked, Ping):
            return ping_result(now=now, workers=self.workers, trouble=self.trouble)
        if type(asked) in QUESTIONS:
            question = receive(request_for("question", asked, "")).command
            return result_of(result_for("question", ask(question, self.world.store, None, now)), asked)
        self.calls.append((name_of(asked), actor, arguments(asked)))
        vault = open_vault(None, self.world.config.fernet_key_file, create=True)
        config = SchedulerConfig(**DEFAULTS)
        commands = Commands(self.world.store, self.world.clock, config, lambda text: vault.encrypt(text).encode())
        incoming = receive(request_for(op or f"op{len(self.calls)}", asked, actor or ""))
        return result_of(commands.run(incoming)[0], asked)


_shared_app: list[FastAPI] = []


def _app(config: ApiConfig, control: FakeControl, clock: Clock) -> FastAPI:
    """The application of all tests in this process, with new services.

    An application analyses the parameters of its routes when it is made and at its first request. This takes longer than most
    tests.
    """
    if not _shared_app:
        _shared_app.append(create_app(config, controls=lambda: control, clock=clock))
    else:
        services = create_services(config, controls=lambda: control, clock=clock)
        services.query_names.update(_shared_app[0].state.services.query_names)
        _shared_app[0].state.services = services
    return _shared_app[0]


_new_databases: dict[str, bytes] = {}
"""The databases of an installation with the users of `ROLES`, by name: creating them takes longer than most tests."""


class World:
    """One installation."""

    def __init__(self, home: Path, password_hash: str) -> None:
        self.home = home
        self.config = ApiConfig(
            database=str(home / "tradewind.db"),
            scheduler_socket=str(home / "s.sock"),
            logs=str(home / "logs"),
            accounts=str(home / "accounts.db"),
            passwords=str(home / "passwords"),
            jwt_key=str(home / "jwt.key"),
            fernet_key_file=str(home / "keys" / "fernet.key"),
            dags_folder="/dags",
            bundle_folders={"example_dags": "/examples"},
            versioned={
                "repo": VersionedBundle(
                    BundleSpec("repo", "git", "https://github.com/team/repo", subdir="dags"), str(home / "bundles" / "repo")
                )
            },
            test_connection=True,
            options={"core": {"parallelism": "32"}, "secrets": {"fernet_key": "***"}},
            airflow_names={"core.dags_folder_of_airflow": ("core", "parallelism")},
            body_max_bytes=100_000,
        )
        (home / "logs").mkdir(exist_ok=True)
        has_data = (home / "tradewind.db").exists()
        for name, content in _new_databases.items():
            if not (home / name).exists():
                (home / name).touch(0o600)
                (home / name).write_bytes(content)
        self.store = open_store(self.config.database, synchronous="NORMAL")
        self.clock = ManualClock()
        self.control = FakeControl(self)
        self.app = _app(self.config, self.control, self.clock)
        self.app.state.services.events = EventHub(self.config.scheduler_socket, connect_within=0.01)
        self.routes = len(self.app.routes)
        if not _new_databases:
            self.set_users({role: role for role in ROLES}, password_hash)
            if not has_data:
                self._keep_new_databases()
        self.runner = asyncio.Runner()
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://tradewind.test")

    def _keep_new_databases(self) -> None:
        for path in (self.config.database, self.config.accounts):
            copy = sqlite3.connect(":memory:")
            with closing(sqlite3.connect(path)) as source, closing(copy):
                source.backup(copy)
                _new_databases[os.path.basename(path)] = copy.serialize()

    @property
    def accounts(self) -> AccountStore:
        found: AccountStore = self.app.state.services.accounts.store
        return found

    def set_users(self, roles: dict[str, str], password_hash: str) -> None:
        """Create or change these users, and delete all others."""
        store, now, stamp = self.accounts, self.clock.wall(), hashlib.sha256(password_hash.encode()).hexdigest()[:16]
        for name, role in roles.items():
            if store.account(name) is None:
                store.create_account(name, role, stamp=stamp, at=now, actor="test", password=password_hash)
            if store.password(name) != password_hash:
                store.set_password(name, password_hash, stamp, at=now, actor="test")
            store.change_account(name, role=role, at=now, actor="test")
        for account in store.accounts():
            if account.name not in roles:
                store.delete_account(account.name, at=now, actor="test")

    def token(self, name: str = "admin") -> str:
        services = self.app.state.services
        return str(services.tokens.issue(name, services.accounts.find(name).stamp))

    def bare(self, method: str, path: str, **more: Any) -> httpx.Response:
        """A request without a login."""
        return self.runner.run(self.http.request(method, path, **more))

    def request(self, method: str, path: str, role: str = "admin", **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token(role)}", **more.pop("headers", {})}
        return self.bare(method, path, headers=headers, **more)

    def get(self, path: str, role: str = "admin", **more: Any) -> httpx.Response:
        return self.request("GET", path, role, **more)

    def json(self, path: str, status: int = 200, **more: Any) -> Any:
        answer = self.get(path, **more)
        assert answer.status_code == status, answer.text
        return answer.json()

    def dag(self, dag_id: str = "sales", tasks: int = 3, bundle: str = "dags", **more: Any) -> None:
        chain = tuple(TaskDefinition(f"t{i}", upstream=(f"t{i - 1}",) if i else ()) for i in range(tasks))
        data = encode_definition(DagDefinition(dag_id, tasks=chain, tags=("money",), **more))
        found = ParsedFile(bundle, f"{dag_id}.py", "h", (ParsedDag(dag_id, data, version_hash(data)),), None, 9, False, 1)
        self.store.register_file(found, paused_at_creation=True)

    def run(self, dag_id: str = "sales", run_id: str = "r1", user: str = "", **more: Any) -> RunRow:
        conf = more.pop("conf", None)
        values: dict[str, Any] = {
            "logical_date": None,
            "interval_start": None,
            "interval_end": None,
            "run_after": self.clock.wall(),
            "at": self.clock.wall(),
            "triggered_by": "cli",
            "triggering_user": user,
            "conf": None if conf is None else json.dumps(conf).encode(),
            **more,
        }
        return self.store.create_run(
            NewRun(dag_id=dag_id, run_id=run_id, run_type=RunType.MANUAL, version=self.store.need_dag(dag_id).version, **values)
        )

    def close(self) -> None:
        self.runner.run(self.http.aclose())
        self.runner.close()
        self.app.state.services.close()
        self.store.close()
        if len(self.app.routes) != self.routes:  # a test has added a route
            _shared_app.clear()


@pytest.fixture
def world(tmp_path: Path, password_hash: str) -> Iterator[World]:
    os.chmod(tmp_path, 0o700)
    world = World(tmp_path, password_hash)
    yield world
    world.close()
