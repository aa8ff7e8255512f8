"""Git repositories over HTTPS with a password, for tests: the program `git http-backend` behind a server of this process."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import os
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

ANSWER_SECONDS = 30


class GitHttps:
    """Serves every repository below a folder while it is entered.

    Args:
        folder: contains the repositories.
        secrets: a folder for the key and the certificate.
        user, password: the credentials that a client has to send.
    """

    def __init__(self, folder: Path, secrets: Path, user: str, password: str) -> None:
        secrets.mkdir(parents=True)
        self.certificate = secrets / "certificate.pem"
        self.asked = 0
        """How many requests had the right password."""
        self.refused = 0
        """How many requests had no password, or a wrong one."""
        key = _write_certificate(self.certificate)
        expected = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, str(folder), expected))
        self._server.daemon_threads = False
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def address(self) -> str:
        return f"https://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> GitHttps:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(owner: GitHttps, folder: str, expected: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = ANSWER_SECONDS

        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

        def _answer(self, body: bytes) -> None:
            if self.headers.get("Authorization") != expected:
                owner.refused += 1
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="git"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            owner.asked += 1
            address = urlsplit(self.path)
            environment = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": folder,
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
                "PATH_INFO": address.path,
                "QUERY_STRING": address.query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type") or "",
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
                "HTTP_GIT_PROTOCOL": self.headers.get("Git-Protocol") or "",
                "REMOTE_USER": "test",
            }
            done = subprocess.run(
                ["git", "http-backend"], env=environment, input=body, capture_output=True, timeout=ANSWER_SECONDS, check=False
            )
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            headers = [line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line]
            status = next((value for name, value in headers if name == "Status"), "200 OK")
            self.send_response(int(status.split()[0]))
            for name, value in headers:
                if name != "Status":
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Write nothing."""

    return Handler


def _write_certificate(path: Path) -> Path:
    """Write a certificate for 127.0.0.1, and its key beside it. Returns the path of the key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_path = path.with_name("key.pem")
    key_path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return key_path
