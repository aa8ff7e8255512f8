"""Servers for tests of provider packages: small replacements for WebHDFS, an IMAP mailbox and an SSH host."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOOL = """\
#!/usr/bin/env python3
import json, os, sys
files = [open(word).read() for word in sys.argv[1:] if os.path.isfile(word)]
record = {"program": os.path.basename(sys.argv[0]), "arguments": sys.argv[1:], "files": files}
with open(os.environ["RECORD"], "a") as out:
    out.write(json.dumps(record) + chr(10))
print("recorded", flush=True)
if os.environ.get("WAIT_IN"):
    with open(os.environ["WAIT_IN"], "w") as ready:
        ready.write(str(os.getpid()))
    import time
    time.sleep(600)
"""
"""A program that replaces a command of Hadoop, and records how it was started."""


def install_tools(folder: Path, *names: str) -> None:
    """Put recorders with these names into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        path = folder / name
        path.write_text(TOOL)
        path.chmod(0o755)


def recorded(path: Path) -> dict[str, dict[str, Any]]:
    """Program → its last start: arguments and files."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {one["program"]: one for one in map(json.loads, lines)}


class _WebHdfs(BaseHTTPRequestHandler):
    """The part of WebHDFS that hooks use: status, create (in two steps) and open. Files are in a dictionary of the server."""

    protocol_version = "HTTP/1.1"

    def _reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _handle(self) -> None:
        parts = urlsplit(self.path)
        query = {name.lower(): values[0] for name, values in parse_qs(parts.query).items()}
        path = parts.path.removeprefix("/webhdfs/v1")
        files: dict[str, bytes] = self.server.files  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = self._chunks()
        operation = query.get("op", "").upper()
        folder = any(name.startswith(path.rstrip("/") + "/") for name in files) or path == "/"
        if operation == "CREATE" and "data" not in query:
            self._reply(307, Location=f"http://{self.headers['Host']}{self.path}&data=1")
        elif operation == "CREATE":
            files[path] = body
            self._reply(201)
        elif operation == "OPEN" and path in files:
            self._reply(200, files[path])
        elif operation == "GETFILESTATUS" and (path in files or folder):
            kind = "FILE" if path in files else "DIRECTORY"
            status = {"type": kind, "length": len(files.get(path, b"")), "pathSuffix": "", "permission": "644"}
            self._reply(200, json.dumps({"FileStatus": status}).encode(), **{"Content-Type": "application/json"})
        else:
            error = {"RemoteException": {"exception": "FileNotFoundException", "message": f"File does not exist: {path}"}}
            self._reply(404, json.dumps(error).encode(), **{"Content-Type": "application/json"})

    do_GET = do_PUT = _handle

    def _chunks(self) -> bytes:
        found = b""
        while size := int(self.rfile.readline().strip() or b"0", 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    def log_message(self, format: str, *args: object) -> None:
        """Write no log."""


@contextmanager
def webhdfs() -> Iterator[tuple[int, dict[str, bytes]]]:
    """A WebHDFS server: its port and its files."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _WebHdfs) as server:
        server.files = {}  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], server.files  # type: ignore[attr-defined]
        server.shutdown()


class _Imap(socketserver.StreamRequestHandler):
    """A mailbox with one mail, for one client at a time (RFC 3501, as far as `imaplib` needs it to search and fetch)."""

    def handle(self) -> None:
        self.wfile.write(b"* OK ready\r\n")
        for line in self.rfile:
            tag, _, rest = line.decode().strip().partition(" ")
            command = rest.split(" ", 1)[0].upper()
            mail: bytes = self.server.mail  # type: ignore[attr-defined]
            if command == "CAPABILITY":
                self.wfile.write(b"* CAPABILITY IMAP4REV1\r\n")
            elif command in ("SELECT", "EXAMINE"):
                self.wfile.write(b"* 1 EXISTS\r\n")
            elif command == "SEARCH":
                self.wfile.write(b"* SEARCH 1\r\n")
            elif command == "FETCH":
                self.wfile.write(b"* 1 FETCH (RFC822 {%d}\r\n%b)\r\n" % (len(mail), mail))
            elif command == "LOGOUT":
                self.wfile.write(b"* BYE\r\n")
            self.wfile.write(f"{tag} OK done\r\n".encode())
            if command == "LOGOUT":
                return


@contextmanager
def imap(mail: bytes) -> Iterator[int]:
    """An IMAP server whose mailbox contains one mail. Gives its port."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Imap) as server:
        server.daemon_threads = True
        server.mail = mail  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def _key(private: Path) -> tuple[Path, Path]:
    """A new pair of keys: the files of the private and of the public key."""
    import asyncssh

    key = asyncssh.generate_private_key("ssh-ed25519")
    public = private.with_suffix(".pub")
    private.touch(mode=0o600)
    key.write_private_key(str(private))
    key.write_public_key(str(public))
    return private, public


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def sshd_program() -> str | None:
    """The server of OpenSSH, if it is installed."""
    return shutil.which("sshd", path=f"/usr/sbin:/usr/local/sbin:{os.environ['PATH']}")


SSHD = """
ListenAddress 127.0.0.1
Port {port}
HostKey {host}
AuthorizedKeysFile {public}
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
Subsystem sftp internal-sftp
"""


@contextmanager
def sshd(folder: Path) -> Iterator[tuple[int, Path]]:
    """OpenSSH's own server: its port, and the private key of the user who runs the tests."""
    program = sshd_program()
    assert program is not None
    private, public = _key(folder / "id")
    host, _ = _key(folder / "host")
    port = _free_port()
    (folder / "sshd_config").write_text(SSHD.format(port=port, host=host, public=public))
    if os.getuid() == 0:
        os.makedirs("/run/sshd", exist_ok=True)  # where a server of root separates its privileges
    server = subprocess.Popen([program, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        lines = []
        for line in server.stderr:
            lines.append(line)
            if "Server listening" in line:
                break
        assert server.poll() is None, lines
        threading.Thread(target=server.stderr.read, daemon=True).start()
        yield port, private
    finally:
        server.terminate()
        server.wait(10)


@contextmanager
def ssh(folder: Path) -> Iterator[tuple[int, Path]]:
    """An SSH host on this machine, with SFTP: its port and the private key that it accepts. It runs commands in a shell."""
    import asyncssh

    private, public = _key(folder / "id")

    async def run(process: Any) -> None:
        child = await asyncio.create_subprocess_shell(
            process.command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=dict(os.environ)
        )
        out, errors = await child.communicate()
        process.stdout.write(out)
        process.stderr.write(errors)
        process.exit(child.returncode)

    loop = asyncio.new_event_loop()

    async def start() -> Any:
        return await asyncssh.listen(
            "127.0.0.1",
            0,
            server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
            authorized_client_keys=str(public),
            process_factory=run,
            sftp_factory=True,
            encoding=None,
        )

    server = loop.run_until_complete(start())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield server.get_port(), private
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


THRIFT_SERVER = """
--master local[1] --conf spark.ui.enabled=false --conf spark.driver.memory=1g --conf spark.sql.warehouse.dir={folder}/warehouse
--class org.apache.spark.sql.hive.thriftserver.HiveThriftServer2 spark-internal
--hiveconf hive.server2.thrift.port={port} --hiveconf hive.server2.thrift.bind.host=127.0.0.1
"""


@contextmanager
def hive_server(spark: Path, folder: Path) -> Iterator[int]:
    """Spark's own server for clients of Hive (HiveServer2): its port.

    Args:
        spark: the folder of Spark, such as that of the package `pyspark`.
    """
    port = _free_port()
    words = THRIFT_SERVER.format(folder=folder, port=port).split()
    environ = {**os.environ, "SPARK_HOME": str(spark)}
    command = [str(spark / "bin" / "spark-submit"), *words]
    server = subprocess.Popen(command, cwd=folder, env=environ, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert server.stderr is not None
        lines = []
        for line in server.stderr:
            lines.append(line)
            if "HiveThriftServer2 started" in line:
                break
        assert server.poll() is None, "".join(lines[-30:])
        threading.Thread(target=server.stderr.read, daemon=True).start()
        yield port
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)
