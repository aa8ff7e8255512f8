"""DAG files and task logs in Google Cloud Storage and Azure Blob Storage: gcsfs and adlfs against servers of these protocols.

The packages and servers are large, so CI does not install them. To run these tests: `pip install gcsfs gcp-storage-emulator adlfs`
and `npm install -g azurite`.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("fsspec", reason="tests of object stores need fsspec: pip install 'tradewind[object-store]'")

import fsspec

from tradewind.bundles.fetch_messages import FetchAnswer, FetchRequest
from tradewind.bundles.fetches import Fetch
from tradewind.bundles.object_store import ObjectStoreFolder
from tradewind.bundles.specs import BundleSpec, VersionedBundle
from tradewind.model.moments import SECOND
from tradewind.platform.clock import SystemClock
from tradewind.platform.loop import Loop
from tradewind.storage.local_logs import LocalLogs
from tradewind.storage.remote_logs import LogUploads, RemoteFolder, RemoteLogs

AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The public key of the account that every azurite has."""
GOOGLE_SERVER = """
import sys, threading
from gcp_storage_emulator.server import create_server
server = create_server("127.0.0.1", int(sys.argv[1]), in_memory=True)
server.start()
print("ready", flush=True)
threading.Event().wait()
"""
LOG = "d/manual__2026-01-31T00:00:00+00:00/t~map_index=3~attempt=1.2.log"


class Store(NamedTuple):
    scheme: str
    options: dict[str, Any]
    """Arguments of the file system of fsspec."""
    connection: dict[str, Any]
    """A connection with the fields that Airflow's hooks read."""

    @property
    def files(self) -> Any:
        return fsspec.filesystem(self.scheme, use_listings_cache=False, skip_instance_cache=True, **self.options)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def served(command: list[str], until: str) -> Iterator[None]:
    """Run a server for the block. It is ready when its output has this text."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    try:
        assert any(until in line for line in process.stdout), f"{command[0]} has ended"
        yield
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextmanager
def google(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    pytest.importorskip("gcsfs", reason="tests of Google Cloud Storage need the packages gcsfs and gcp-storage-emulator")
    pytest.importorskip("gcp_storage_emulator", reason="tests of Google Cloud Storage need gcsfs and gcp-storage-emulator")
    port = free_port()
    options = {"endpoint_url": f"http://127.0.0.1:{port}", "token": "anon", "project": "p"}
    with served([sys.executable, "-c", GOOGLE_SERVER, str(port)], "ready"):
        yield Store("gs", options, {"extra": {"storage_options": options}})


@contextmanager
def azure(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    pytest.importorskip("adlfs", reason="tests of Azure Blob Storage need the package adlfs")
    command = shutil.which("azurite-blob")
    if command is None:
        pytest.skip("tests of Azure Blob Storage need the server azurite: npm install -g azurite")
    port = free_port()
    address = f"http://127.0.0.1:{port}/devstoreaccount1"
    text = f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={AZURITE_KEY};BlobEndpoint={address};"
    options = ["--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck"]
    with served([command, "--blobPort", str(port), *options], "successfully listens"):
        yield Store("abfs", {"connection_string": text}, {"extra": {"connection_string": text}})


@pytest.fixture(params=[google, azure], ids=["google", "azure"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")  # the emulator does not speak gRPC
    make: Callable[[pytest.MonkeyPatch], Any] = request.param
    with make(monkeypatch) as made:
        made.files.mkdir("bucket")
        yield made


def fetched(bundle: VersionedBundle, store: Store) -> FetchAnswer:
    """Fetch in a process of its own, as the parser does."""
    loop, answers = Loop(SystemClock()), list[FetchAnswer]()

    def done(answer: FetchAnswer) -> None:
        answers.append(answer)
        loop.stop()

    connection = {**store.connection, "extra": json.dumps(store.connection["extra"])}
    try:
        Fetch(loop, FetchRequest(bundle.folder, bundle.spec, connection=connection), 100 * SECOND, done)
        loop.run()
    finally:
        loop.close()
    return answers[0]


def held(folder: str) -> dict[str, str]:
    root = Path(folder)
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


@pytest.mark.timeout(300)  # a process that imports the packages of the store
def test_a_folder_of_a_bucket(store: Store, tmp_path: Path) -> None:
    spec = BundleSpec("dags", "object-store", f"{store.scheme}://bucket/team/dags", "", "", "c")
    bundle, files = VersionedBundle(spec, str(tmp_path / "dags")), store.files
    assert "cannot be read: FileNotFoundError" in fetched(bundle, store).problem
    for name, content in (("dags/a.py", b"1"), ("dags/inner/b ä=1.py", b"b"), ("dags-of-others/c.py", b"c")):
        files.pipe_file(f"bucket/team/{name}", content)
    folder = ObjectStoreFolder(bundle.folder, spec, store.connection)
    first = folder.refresh()
    assert held(bundle.files(first)) == {"a.py": "1", "inner/b ä=1.py": "b"}
    assert folder.refresh() == folder.look() == first, "nothing has changed"
    files.pipe_file("bucket/team/dags/a.py", b"2")
    files.rm_file("bucket/team/dags/inner/b ä=1.py")
    files.pipe_file("bucket/team/dags/new.py", b"n")
    second = folder.refresh()
    assert held(bundle.files(second)) == {"a.py": "2", "new.py": "n"}
    assert held(bundle.files(first)) == {"a.py": "1", "inner/b ä=1.py": "b"}, "the first version stays"
    assert fetched(bundle, store).version == second


def test_logs_are_uploaded_and_read(store: Store, tmp_path: Path) -> None:
    folder = RemoteFolder(f"{store.scheme}://bucket/airflow/logs", json.dumps(store.options))
    now = 1_000_000.0
    uploads = LogUploads(local := LocalLogs(str(tmp_path / "one")), folder, 0, lambda: now)
    path = tmp_path / "one" / LOG
    path.parent.mkdir(parents=True)

    def write(content: bytes) -> None:
        path.write_bytes(content)
        os.utime(path, (now, now))

    elsewhere = RemoteLogs(LocalLogs(str(tmp_path / "two")), folder)
    with pytest.raises(FileNotFoundError):
        elsewhere.open(LOG)
    write(b"first\n")
    assert uploads.run_pass(everything=True) == 1
    with elsewhere.open(LOG) as file:
        assert file.read() == b"first\n"
    now += 100
    write(b"first\n" + b"more\n" * 400_000)
    assert uploads.run_pass(everything=True) == 1
    with elsewhere.open(LOG) as file:
        assert file.read() == b"first\n" + b"more\n" * 400_000
        assert (file.seek(1_000_001), file.read(4)) == (1_000_001, b"more")
    (tmp_path / "two" / LOG).parent.mkdir(parents=True)
    (tmp_path / "two" / LOG).write_bytes(b"last line of another machine\n")
    assert LogUploads(LocalLogs(str(tmp_path / "two")), folder, 0, lambda: now).run_pass(everything=True) == 1
    path.unlink()
    with RemoteLogs(local, folder).open(LOG) as file:
        assert file.read() == b"first\n" + b"more\n" * 400_000 + b"last line of another machine\n"
