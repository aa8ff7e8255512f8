"""An application over a real store, with a scheduler that is played by the store's own verbs."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.unit.scheduler.bench import DEFAULTS
from tradewind.api.app import create_app
from tradewind.api.auth.users import hash_password
from tradewind.api.config import ApiConfig
from tradewind.model.definition import DagDefinition, TaskDefinition, encode_definition, version_hash
from tradewind.model.errors import NotFound, Unreachable
from tradewind.model.rows import ConnectionRow, NewRun, ParsedDag, ParsedFile, PoolRow, RunRow, VariableRow
from tradewind.model.states import RunType
from tradewind.platform.clock import ManualClock
from tradewind.scheduler.commands.handler import Commands, raise_error
from tradewind.scheduler.config import SchedulerConfig
from tradewind.scheduler.explain.questions import ask
from tradewind.store.crypto import open_vault
from tradewind.store.sql.store import SqliteStore
from tradewind.wire.messages import Command

PASSWORD = "correct horse"
_AS_THE_SCHEDULER = frozenset(
    {"mark", "set_run_state", "note_run", "note_task", "create_backfill", "pause_backfill", "cancel_backfill"}
    | {"retry_callbacks", "drop_callbacks", "note_logins", "revoke_token"}
)
ROLES = ("viewer", "user", "op", "admin")


@pytest.fixture(scope="session")
def password_hash() -> str:
    return hash_password(PASSWORD)


class FakeControl:
    """Carries out commands as the scheduler would, and remembers them. `gone`: there is no scheduler."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.calls: list[tuple[str, str | None, dict[str, Any]]] = []
        self.gone = False
        self.trouble: str | None = None

    def close(self) -> None: ...

    def call(self, command: str, /, *, actor: str | None = None, timeout: float | None = None, **args: Any) -> Any:
        if self.gone:
            raise Unreachable("There is no live scheduler at /run/s.sock. Start one with: tradewind standalone")
        args = {key: value for key, value in args.items() if value is not None}  # as ControlClient does
        if command != "ping":
            self.calls.append((command, actor, args))
        if command in _AS_THE_SCHEDULER:
            return self._carried_out(command, actor or "", args)
        return getattr(self, f"_{command}")(actor or "", **args)

    def _carried_out(self, command: str, actor: str, args: dict[str, Any]) -> Any:
        """By the very code that the scheduler has."""
        config = SchedulerConfig(**DEFAULTS)
        commands = Commands(self.world.store, self.world.clock, config, str.encode)
        result, _ = commands.run(Command(f"op{len(self.calls)}", command, args, actor))
        return raise_error(result)

    def _ping(self, actor: str) -> dict[str, Any]:
        return {"epoch": 1, "now": self.world.clock.wall(), "live_runs": 0, "trouble": self.trouble}

    def _set_paused(self, actor: str, dag_id: str, is_paused: bool) -> bool:
        return self.world.store.set_paused(dag_id, is_paused, actor, self.world.clock.wall())

    def _trigger(self, actor: str, dag_id: str, **args: Any) -> dict[str, Any]:
        return self.world.run(dag_id, args.pop("run_id", None) or "manual__x", user=actor, **args)._asdict()

    def _clear(self, actor: str, dag_id: str, run_id: str | None = None, **args: Any) -> dict[str, Any]:
        return {
            "task_instances": [
                {"dag_id": dag_id, "run_id": run_id, "task_id": name, "map_index": -1} for name in args.get("task_ids", ())
            ]
        }

    def _create_asset_event(self, actor: str, asset_id: int, **args: Any) -> None:
        raise NotFound(f"there is no asset with id {asset_id}")

    def _drop_queued_events(self, actor: str, **args: Any) -> None:
        raise NotFound("no event waits")

    def _set_pool(self, actor: str, **args: Any) -> None:
        self.world.store.set_pool(
            PoolRow(args["name"], args["slots"], args.get("description"), args["include_deferred"]), actor, 0
        )

    def _delete_pool(self, actor: str, name: str) -> None:
        self.world.store.delete_pool(name, actor, 0)

    def _set_variable(self, actor: str, key: str, value: str, description: str | None = None) -> None:
        vault = open_vault(None, self.world.config.fernet_key_file, create=True)
        self.world.store.set_variable(VariableRow(key, vault.encrypt(value).encode(), description, True), actor, 0)

    def _delete_variable(self, actor: str, key: str) -> None:
        self.world.store.delete_variable(key, actor, 0)

    def _set_connection(self, actor: str, **args: Any) -> None:
        vault = open_vault(None, self.world.config.fernet_key_file, create=True)
        names = ("conn_id", "conn_type", "description", "host", "login", "port", "schema")
        secrets = [None if not args.get(name) else vault.encrypt(args[name]).encode() for name in ("password", "extra")]
        self.world.store.set_connection(ConnectionRow(*(args.get(name) for name in names), *secrets), actor, 0)  # type: ignore[arg-type]

    def _why(self, actor: str, **args: Any) -> dict[str, Any]:
        return ask("why", self.world.store, None, args, self.world.clock.wall())

    def _why_dag(self, actor: str, **args: Any) -> dict[str, Any]:
        return ask("why_dag", self.world.store, None, args, self.world.clock.wall())

    def _upcoming(self, actor: str, **args: Any) -> dict[str, Any]:
        return ask("upcoming", self.world.store, None, args, self.world.clock.wall())

    def _waits(self, actor: str, **args: Any) -> dict[str, Any]:
        return ask("waits", self.world.store, None, args, self.world.clock.wall())

    def _delete_connection(self, actor: str, conn_id: str) -> None:
        self.world.store.delete_connection(conn_id, actor, 0)


class World:
    """One installation."""

    def __init__(self, home: Path, password_hash: str) -> None:
        self.home = home
        self.config = ApiConfig(
            database=str(home / "tradewind.db"),
            scheduler_socket=str(home / "s.sock"),
            logs=str(home / "logs"),
            passwords=str(home / "passwords"),
            jwt_key=str(home / "jwt.key"),
            fernet_key_file=str(home / "keys" / "fernet.key"),
            dags_folder="/dags",
            body_max_bytes=100_000,
        )
        (home / "logs").mkdir()
        (home / "passwords").touch(mode=0o600)
        self.set_users({role: role for role in ROLES}, password_hash)
        self.store = SqliteStore.open(self.config.database, synchronous="NORMAL")
        self.clock = ManualClock()
        self.control = FakeControl(self)
        self.app = create_app(self.config, controls=lambda: self.control, clock=self.clock)
        self.runner = asyncio.Runner()
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://tradewind.test")

    def set_users(self, roles: dict[str, str], password_hash: str) -> None:
        entries = {name: {"role": role, "password": password_hash} for name, role in roles.items()}
        (self.home / "passwords").write_text(json.dumps(entries))

    def token(self, name: str = "admin") -> str:
        services = self.app.state.services
        return str(services.tokens.give(name, services.users.find(name).stamp))

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

    def dag(self, dag_id: str = "sales", tasks: int = 3) -> None:
        chain = tuple(TaskDefinition(f"t{i}", upstream=(f"t{i - 1}",) if i else ()) for i in range(tasks))
        data = encode_definition(DagDefinition(dag_id, tasks=chain, tags=("money",)))
        found = ParsedFile("dags", f"{dag_id}.py", "h", (ParsedDag(dag_id, data, version_hash(data)),), None, 9, False, 1)
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


@pytest.fixture
def world(tmp_path: Path, password_hash: str) -> Iterator[World]:
    os.chmod(tmp_path, 0o700)
    world = World(tmp_path, password_hash)
    yield world
    world.close()
