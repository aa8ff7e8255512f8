"""What a gateway lets a worker do, and what not: a real gateway between a scheduler and a worker that the test plays."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

pytest.importorskip("websockets", reason="tests of the gateway need websockets: pip install 'tradewind[remote]'")

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tradewind.client.gateway_line import tls_problem
from tradewind.gateway.config import Config
from tradewind.gateway.server import Gateway
from tradewind.model.moments import SECOND
from tradewind.model.states import Outcome
from tradewind.wire import gateway as g
from tradewind.wire.celery_messages import seal
from tradewind.wire.frames import FrameReader, frame
from tradewind.wire.messages import (
    Cancel,
    FromRunner,
    HostHello,
    Report,
    Submit,
    Withdrawn,
    Workload,
    encode,
)
from tradewind.wire.worker_tokens import WorkerGrant, attempt_token, relay_token, sign_grant

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
MINE, ANOTHERS = (1, 0, 5), (2, 0, 9)
RECORDED = Path(__file__).with_name("frames_of_protocol_1.json")


class Scheduler:
    """The scheduler's socket: what each worker sends, and a way to answer."""

    def __init__(self) -> None:
        self.documents: asyncio.Queue[bytes] = asyncio.Queue()
        self.writers: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames, is_gateway = FrameReader(), False
        await self.writers.put(writer)
        while data := await reader.read(65536):
            for document in frames.feed(data):
                is_gateway = is_gateway or b"gateway_hello" in document
                if not is_gateway:
                    await self.documents.put(document)


class Border:
    """A gateway that runs, and its scheduler."""

    def __init__(self, address: str, scheduler: Scheduler) -> None:
        self.address = address
        self.scheduler = scheduler

    @asynccontextmanager
    async def worker(self, token: str, query: str = "") -> AsyncIterator[ClientConnection]:
        """Connect as a worker."""
        async with connect(
            f"{self.address}/worker{query}", additional_headers={"Authorization": f"Bearer {token}"}, compression=None
        ) as link:
            yield link

    async def passed_on(self) -> object:
        """The next message of a worker that reached the scheduler."""
        return g.decode_from_host(await asyncio.wait_for(self.scheduler.documents.get(), 10))

    async def send_to_workers(self, message: object) -> None:
        """Send as the scheduler, to all connections."""
        for _ in range(self.scheduler.writers.qsize()):
            writer = await self.scheduler.writers.get()
            writer.write(frame(encode(message)))
            await self.scheduler.writers.put(writer)


def token(worker: str = "etl-1", queues: tuple[str, ...] = (), expires: int = 0, key: bytes = KEY) -> str:
    return sign_grant(WorkerGrant(worker, queues, 0, expires), key)


def run(folder: Path, play: Callable[[Border], Awaitable[None]]) -> None:
    """Run a gateway for this play."""

    async def main() -> None:
        scheduler = Scheduler()
        path = str(folder / "scheduler.sock")
        server = await asyncio.start_unix_server(scheduler.serve, path)
        (folder / "dags").mkdir()
        (folder / "dags" / "one.py").write_text("x = 1\n")
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        config = Config(
            name="gw",
            host="127.0.0.1",
            port=0,
            scheduler_socket=path,
            key=KEY,
            log_folder=str(folder / "logs"),
            xcom_folder=str(folder / "xcom"),
            outage_lease=900 * SECOND,
            dags_folder=str(folder / "dags"),
            bundle_store=str(folder / "store"),
        )
        gateway = asyncio.create_task(Gateway(config, address.set_result).run())
        try:
            await asyncio.wait_for(play(Border(await asyncio.wait_for(address, 10), scheduler)), 30)
        finally:
            gateway.cancel()
            await asyncio.gather(gateway, return_exceptions=True)
            server.close()

    asyncio.run(main())


async def say(link: ClientConnection, message: object, to: int = g.SCHEDULER) -> None:
    encoded = encode(message) if to == g.SCHEDULER else g.encode(message)
    await link.send(bytes((to,)) + encoded)


async def receive(link: ClientConnection, kind: type[object]) -> object:
    """The next message of the gateway of this kind; others are passed over."""
    while True:
        data = await asyncio.wait_for(link.recv(), 10)
        assert isinstance(data, bytes)
        if data[0] == g.GATEWAY:
            message = g.decode_from_gateway(data[1:])
            if isinstance(message, kind):
                return message


async def closed(link: ClientConnection) -> str:
    """Wait until the gateway closes the connection; return why."""
    try:
        while True:
            await asyncio.wait_for(link.recv(), 10)
    except ConnectionClosed:
        return link.close_reason or ""


def hello(worker: str = "etl-1@remote", **more: object) -> HostHello:
    return HostHello(f"{worker}.abc", 1, "vm", **more)  # type: ignore[arg-type]


def report(key: tuple[int, int, int]) -> FromRunner:
    return FromRunner(key, Report(1, Outcome.SUCCESS))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "this is no worker token"),
        ("tww1.e30.x", "the worker token is damaged"),
        (token(key=OTHER_KEY), "signed with another key"),
        (token(expires=int(time.time() - 60) * SECOND), "has expired"),
    ],
)
def test_without_a_valid_token_nobody_connects(tmp_path: Path, text: str, why: str) -> None:
    async def play(border: Border) -> None:
        with pytest.raises(InvalidStatus) as refused:
            async with border.worker(text):
                pass
        assert refused.value.response.status_code == 401
        assert why in refused.value.response.body.decode()

    run(tmp_path, play)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (token(), "only a standby scheduler"),
        (relay_token(OTHER_KEY, time.time_ns() // 1000), "another worker.key"),
        (relay_token(KEY, time.time_ns() // 1000 - 3600 * SECOND), "clocks"),
    ],
    ids=["a worker token", "another key", "an old token"],
)
def test_only_a_standby_scheduler_reaches_the_scheduler_itself(tmp_path: Path, text: str, why: str) -> None:
    async def play(border: Border) -> None:
        headers = {"Authorization": f"Bearer {text}"}
        with pytest.raises(InvalidStatus) as refused:
            async with connect(f"{border.address}/scheduler", additional_headers=headers, compression=None):
                pass
        assert refused.value.response.status_code == 401
        assert why in refused.value.response.body.decode()

    run(tmp_path, play)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (hello("etl-2@remote"), "its token is for etl-1@remote"),
        (hello("w1"), "its token is for etl-1@remote"),
        (hello(queues=("far", "secret")), "does not allow the queue secret"),
        (Cancel(MINE, "because", 0), "Invalid value"),
    ],
    ids=["another worker", "the local worker host", "another queue", "a command"],
)
def test_a_worker_that_claims_too_much_is_disconnected(tmp_path: Path, said: object, why: str) -> None:
    """It speaks for another worker, for a queue that its token does not name, or as the scheduler."""

    async def play(border: Border) -> None:
        async with border.worker(token(queues=("far",))) as link:
            await say(link, said)
            assert why in await closed(link)
        assert border.scheduler.documents.empty()

    run(tmp_path, play)


def test_a_worker_speaks_only_about_its_own_attempts(tmp_path: Path) -> None:
    """Attempts that the scheduler gave it, or whose token it has. The token of another worker is worth nothing."""

    async def play(border: Border) -> None:
        async with border.worker(token()) as link:
            await receive(link, g.SchedulerOpen)
            await say(link, report(ANOTHERS))
            stolen = attempt_token(KEY, "etl-2@remote", ANOTHERS)
            forged = attempt_token(OTHER_KEY, "etl-1@remote", ANOTHERS)
            await say(link, g.Holding(((ANOTHERS, stolen), (ANOTHERS, forged))), g.GATEWAY)
            await say(link, report(ANOTHERS))
            await say(link, hello(live=(MINE, ANOTHERS)))
            registered = await border.passed_on()
            assert isinstance(registered, HostHello)  # the reports before it were dropped
            assert (registered.live, registered.gateway) == ((), "gw")
            await border.send_to_workers(Submit((Workload(*MINE, "d", "t", "r"),)))
            given = await receive(link, g.AttemptTokens)
            assert isinstance(given, g.AttemptTokens)
            assert given == g.AttemptTokens(((MINE, attempt_token(KEY, "etl-1@remote", MINE)),))
            await say(link, report(ANOTHERS))
            await say(link, report(MINE))
            assert await border.passed_on() == report(MINE)
        async with border.worker(token()) as link:
            await receive(link, g.SchedulerOpen)
            await say(link, g.Holding(given.tokens), g.GATEWAY)
            await say(link, hello(live=(MINE, ANOTHERS)))
            again = await border.passed_on()
            assert isinstance(again, HostHello)
            assert again.live == (MINE,)

    run(tmp_path, play)


def test_a_worker_gets_only_the_files_that_it_was_told_of(tmp_path: Path) -> None:
    async def play(border: Border) -> None:
        async with border.worker(token(), "?files=1") as link:
            await receive(link, g.SchedulerOpen)
            await say(link, g.GetManifest("0" * 64), g.GATEWAY)
            assert await receive(link, g.Manifest) == g.Manifest("0" * 64, None)
            await border.send_to_workers(Submit((Workload(*MINE, "d", "t", "r", bundle="dags-folder"),)))
            result = await receive(link, g.BundleAt)
            assert isinstance(result, g.BundleAt)
            await say(link, g.GetManifest(result.version), g.GATEWAY)
            manifest = await receive(link, g.Manifest)
            assert isinstance(manifest, g.Manifest)
            assert manifest.files is not None
            (file,) = manifest.files
            for name, piece in (
                (file.sha256, g.ContentPiece(file.sha256, b"x = 1\n")),
                ("1" * 64, g.ContentPiece("1" * 64, problem="no version that was announced to this worker has such a file")),
            ):
                await say(link, g.GetContent(name), g.GATEWAY)
                assert await receive(link, g.ContentPiece) == piece

    run(tmp_path, play)


def test_a_worker_that_has_its_own_files_is_sent_none(tmp_path: Path) -> None:
    async def play(border: Border) -> None:
        async with border.worker(token()) as link:
            await receive(link, g.SchedulerOpen)
            await border.send_to_workers(Submit((Workload(*MINE, "d", "t", "r", bundle="dags-folder"),)))
            first = await asyncio.wait_for(link.recv(), 10)
            assert isinstance(first, bytes)
            assert isinstance(g.decode_from_gateway(first[1:]), g.AttemptTokens)
            await say(link, g.GetManifest("0" * 64), g.GATEWAY)
            assert "a request for DAG files" in await closed(link)

    run(tmp_path, play)


def test_an_attempt_from_a_broker_is_checked(tmp_path: Path) -> None:
    """The signature, and the queue that the token allows. Only then may the worker speak about the attempt."""
    work = Workload(*MINE, "d", "t", "r", queue="far")

    async def play(border: Border) -> None:
        async with border.worker(token(queues=("far",))) as link:
            await receive(link, g.SchedulerOpen)
            for number, envelope, why in (
                ("1", seal(work, OTHER_KEY), "signed with another key"),
                ("2", "nonsense", "is not an attempt"),
                ("3", seal(Workload(*MINE, "d", "t", "r", queue="secret"), KEY), "does not allow the queue secret"),
            ):
                await say(link, g.Claim(number, envelope), g.GATEWAY)
                answer = await receive(link, g.Claimed)
                assert isinstance(answer, g.Claimed)
                assert answer.id == number
                assert why in answer.problem
            await say(link, report(MINE))
            await say(link, g.Claim("4", seal(work, KEY)), g.GATEWAY)
            assert await receive(link, g.Claimed) == g.Claimed("4")
            await say(link, Withdrawn(MINE))
            await say(link, report(MINE))
            assert await border.passed_on() == Withdrawn(MINE)  # the report before the claim was dropped
            assert await border.passed_on() == report(MINE)

    run(tmp_path, play)


def test_frames_of_older_worker_hosts_are_understood(tmp_path: Path) -> None:
    """Frames that were recorded from a worker host of protocol 1. They stay as they are when the protocol grows."""
    recorded = [bytes.fromhex(text) for text in json.loads(RECORDED.read_text())]

    async def play(border: Border) -> None:
        async with border.worker(token(queues=("far",))) as link:
            await receive(link, g.SchedulerOpen)
            await border.send_to_workers(Submit((Workload(*MINE, "d", "t", "r"),)))
            await receive(link, g.AttemptTokens)
            for data in recorded:
                await link.send(data)
            assert await receive(link, g.Renewed) == g.Renewed(1, g.LEASE, "gw")
            assert await receive(link, g.LogStored) == g.LogStored("d/r/t~attempt=1.5.log", "a.1", 5)
            kinds = [type(await border.passed_on()).__name__ for _ in range(6)]
            assert kinds == ["HostHello", "FromRunner", "FromRunner", "Draining", "Withdrawn", "Goodbye"]

    run(tmp_path, play)


def test_an_unknown_certificate_is_explained() -> None:
    """The warning of the worker names the setting that helps."""
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "self-signed certificate"
    assert tls_problem(error) == (
        "TLS: the certificate of the gateway is not accepted: self-signed certificate. If your own authority has signed it, or "
        "nobody, set TRADEWIND__WORKER__CA_FILE to the file of that certificate"
    )
