"""The API as a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tradewind.api.auth.passwords import ensure_admin
from tradewind.api.config import ApiConfig
from tradewind.api.serve import _listen, main
from tradewind.model.errors import ConfigError
from tradewind.store.accounts import open_accounts
from tradewind.store.factory import open_store


class Process:
    def __init__(self, home: Path, **more: Any) -> None:
        open_store(home / "t.db").close()
        accounts = open_accounts(str(home / "accounts.db"), "", 1)
        self.password = ensure_admin(accounts, 1)
        accounts.close()
        names = {"database": "t.db", "scheduler_socket": "s.sock", "accounts": "accounts.db", "jwt_key": "jwt.key"}
        config = {**{key: str(home / name) for key, name in names.items()}, "logs": "", "passwords": "", "port": 0, **more}
        reading, writing = os.pipe()
        arguments = json.dumps({"config": config, "ready_fd": writing})
        self.process = subprocess.Popen([sys.executable, "-m", "tradewind.api.serve", arguments], pass_fds=[writing])
        os.close(writing)
        with os.fdopen(reading) as ready:
            self.address = ready.readline().strip()

    def ask(self, path: str, body: Any = None, token: str | None = None) -> Any:
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.address + path, data, headers), timeout=20) as answer:
            return json.load(answer)

    def megabytes(self) -> float:
        """Private memory of the process, without shared pages."""
        for line in Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Private_Dirty:"):
                return int(line.split()[1]) / 1024
        raise AssertionError("no Private_Dirty in smaps_rollup")


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    process = Process(tmp_path)
    yield process
    process.process.kill()
    process.process.wait()


@pytest.mark.spec("S62")
def test_it_announces_its_address_serves_and_ends_with_status_0(process: Process) -> None:
    assert process.address.startswith("http://127.0.0.1:")
    assert process.ask("/api/v2/monitor/health")["metadatabase"] == {"status": "healthy"}
    token = process.ask("/auth/token", {"username": "admin", "password": process.password})["access_token"]
    assert process.ask("/api/v2/dags", token=token) == {"dags": [], "total_entries": 0}
    process.process.send_signal(signal.SIGTERM)
    assert process.process.wait(5) == 0


def test_it_ends_within_seconds_although_a_client_hangs(process: Process) -> None:
    port = int(process.address.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(b"POST /auth/token HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
        process.ask("/api/v2/version")
        process.process.send_signal(signal.SIGTERM)
        assert process.process.wait(10) is not None


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_login_leaves_no_memory_behind(process: Process) -> None:
    process.ask("/api/v2/monitor/health")
    idle = process.megabytes()
    for _ in range(3):
        process.ask("/auth/token", {"username": "admin", "password": process.password})
    assert idle < 50
    assert process.megabytes() < idle + 12, "the hash's 19 MiB are given back"


def test_an_address_in_use_is_an_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config = ApiConfig(database="", scheduler_socket="", logs="", accounts="", passwords="", jwt_key="", port=port)
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1 port {port}"):
            main(config)


def test_answers_are_not_held_back_for_acknowledgements() -> None:
    """An answer is written in parts. Without TCP_NODELAY each part after the first one may wait 40 ms."""

    async def option() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            found.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listener = _listen("127.0.0.1", 0)
        async with await asyncio.start_server(note, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            writer.close()
            return await asyncio.wait_for(found, 10)

    assert asyncio.run(option()) != 0


def _wrong_login(process: Process, claimed: str) -> int:
    body = json.dumps({"username": "admin", "password": "wrong"}).encode()
    headers = {"Content-Type": "application/json", "X-Forwarded-For": claimed}
    try:
        urllib.request.urlopen(urllib.request.Request(f"{process.address}/auth/token", body, headers), timeout=20).close()
    except urllib.error.HTTPError as error:
        return error.code
    return 0


def test_a_client_cannot_claim_another_address_unless_it_is_a_trusted_proxy(process: Process) -> None:
    """Otherwise each guess at a password could use another address, and the throttle would have no effect."""
    assert [_wrong_login(process, f"10.0.0.{number}") for number in range(6)] == [401] * 5 + [429]


def test_a_trusted_proxy_names_the_client(tmp_path: Path) -> None:
    process = Process(tmp_path, trusted_proxies=["127.0.0.1"])
    try:
        assert [_wrong_login(process, "10.0.0.1") for _ in range(6)] == [401] * 5 + [429]
        assert _wrong_login(process, "10.0.0.2") == 401
    finally:
        process.process.kill()
        process.process.wait()
