"""A private OpenLDAP server with some people and groups, and its own certificate for TLS."""

from __future__ import annotations

import datetime
import glob
import ipaddress
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

REQUIRED = os.environ.get("TESTS_REQUIRE_LDAP") == "1"
"""A missing server is an error, not a skipped test."""

BASE = "dc=example,dc=com"
SEARCHER, SEARCHER_PASSWORD = f"cn=searcher,{BASE}", "searching"
ROOT, ROOT_PASSWORD = f"cn=root,{BASE}", "rooting"

_SETTINGS = """
{schemas}
modulepath {modules}
moduleload back_mdb
moduleload memberof
pidfile {folder}/slapd.pid
TLSCertificateFile {folder}/cert.pem
TLSCertificateKeyFile {folder}/key.pem
disallow bind_anon
database mdb
suffix "{base}"
rootdn "{root}"
rootpw {root_password}
directory {folder}/data
overlay memberof
access to attrs=userPassword by anonymous auth by * none
access to * by users read by * none
"""

_PEOPLE = f"""
dn: {BASE}
objectClass: dcObject
objectClass: organization
dc: example
o: Example

dn: {SEARCHER}
objectClass: applicationProcess
objectClass: simpleSecurityObject
cn: searcher
userPassword: {SEARCHER_PASSWORD}

dn: ou=people,{BASE}
objectClass: organizationalUnit
ou: people

dn: uid=ann,ou=people,{BASE}
objectClass: inetOrgPerson
uid: ann
cn: Ann Lee
sn: Lee
displayName: Ann Lee
mail: ann@example.com
userPassword: ann's password

dn: uid=bob*(x),ou=people,{BASE}
objectClass: inetOrgPerson
uid: bob*(x)
cn: Bob
sn: Ray
userPassword: bob's password

dn: uid=admin,ou=people,{BASE}
objectClass: inetOrgPerson
uid: admin
cn: Mallory
sn: Mallory
userPassword: mallory's password

dn: ou=groups,{BASE}
objectClass: organizationalUnit
ou: groups
"""


class LdapServer:
    """A running slapd.

    Attributes:
        url: address without encryption, which StartTLS can encrypt.
        secure_url: address with TLS.
        ca_file: the certificate to trust.
    """

    def __init__(self, folder: Path) -> None:
        program, modules = _program(), _first("/usr/lib/ldap", "/usr/lib64/openldap", "/usr/libexec/openldap")
        schemas = _first("/etc/ldap/schema", "/etc/openldap/schema")
        self.ca_file = str(folder / "cert.pem")
        _write_certificate(folder)
        (folder / "data").mkdir()
        settings = folder / "slapd.conf"
        settings.write_text(
            _SETTINGS.format(
                schemas="\n".join(f"include {schemas}/{one}.schema" for one in ("core", "cosine", "inetorgperson")),
                modules=modules,
                folder=folder,
                base=BASE,
                root=ROOT,
                root_password=ROOT_PASSWORD,
            )
        )
        (folder / "people.ldif").write_text(_PEOPLE.lstrip())
        add = [program, "-T", "add", "-f", str(settings), "-l", str(folder / "people.ldif")]
        subprocess.run(add, check=True, stdin=subprocess.DEVNULL, timeout=60, capture_output=True)
        plain, secure = _free_port(), _free_port()
        self.url, self.secure_url = f"ldap://127.0.0.1:{plain}", f"ldaps://127.0.0.1:{secure}"
        with (folder / "output").open("wb") as output:
            self._process = subprocess.Popen(
                [program, "-f", str(settings), "-h", f"{self.url} {self.secure_url}", "-d", "0"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        until = time.monotonic() + 60
        while not (_listens(plain) and _listens(secure)):
            assert self._process.poll() is None, (folder / "output").read_text()
            assert time.monotonic() < until, "slapd does not answer"
            try:
                self._process.wait(0.02)
            except subprocess.TimeoutExpired:
                pass

    def add_groups(self) -> None:
        """Add the groups to the running server: only then does the server set `memberOf` of the people."""
        import ldap3

        people = {name: f"uid={name},ou=people,{BASE}" for name in ("ann", "bob*(x)")}
        tls = ldap3.Tls(ca_certs_file=self.ca_file)
        with ldap3.Connection(ldap3.Server(self.secure_url, tls=tls), ROOT, ROOT_PASSWORD, raise_exceptions=True) as root:
            for group, members in (("eng", ["ann"]), ("finance", ["ann", "bob*(x)"])):
                values = {"member": [people[name] for name in members]}
                root.add(f"cn={group},ou=groups,{BASE}", "groupOfNames", values)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def ldap_server(folder: Path) -> LdapServer:
    """Start a server. Skips the test on a machine without slapd."""
    if _program() == "":
        if REQUIRED:
            raise AssertionError("slapd is not installed: apt-get install slapd")
        pytest.skip("needs an LDAP server: apt-get install slapd")
    return LdapServer(folder)


def _program() -> str:
    return shutil.which("slapd") or next(iter(glob.glob("/usr/sbin/slapd")), "")


def _first(*paths: str) -> str:
    return next(path for path in paths if os.path.isdir(path))


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _write_certificate(folder: Path) -> None:
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
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").touch(mode=0o600)
    (folder / "key.pem").write_bytes(private)
