"""A separate network for a worker, as on another machine: a network namespace with one virtual cable, which can be cut."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


class Namespace:
    """A network namespace, created by `namespace`.

    Attributes:
        host: the address of this machine, seen from the namespace.
        guest: the address of the namespace, seen from this machine.
        prefix: a command that runs another one in the namespace.
    """

    def __init__(self) -> None:
        number = os.getpid() % 60_000
        self._name, self._cable = f"tw{number}", f"twc{number}"
        self._net = f"10.213.{number // 250}.{number % 250 // 4 * 4}".rpartition(".")
        base = int(self._net[2])
        self.host, self.guest = (f"{self._net[0]}.{base + offset}" for offset in (1, 2))
        self.prefix = ("ip", "netns", "exec", self._name)

    def make(self) -> None:
        name, cable = self._name, self._cable
        _ip("netns", "add", name)
        _ip("link", "add", cable, "type", "veth", "peer", "name", "uplink", "netns", name)
        _ip("addr", "add", f"{self.host}/30", "dev", cable)
        _ip("link", "set", cable, "up")
        _ip("-n", name, "addr", "add", f"{self.guest}/30", "dev", "uplink")
        for device in ("uplink", "lo"):
            _ip("-n", name, "link", "set", device, "up")

    def cut(self) -> None:
        """From now on no packet arrives in either direction, and neither side gets an error."""
        _ip("link", "set", self._cable, "down")

    def mend(self) -> None:
        _ip("link", "set", self._cable, "up")

    def remove(self) -> None:
        subprocess.run(["ip", "netns", "del", self._name], capture_output=True, check=False)
        subprocess.run(["ip", "link", "del", self._cable], capture_output=True, check=False)


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")


@contextmanager
def namespace() -> Iterator[Namespace]:
    """A namespace for the block. Without the permission to create one, the test is skipped with this reason."""
    if shutil.which("ip") is None:
        pytest.skip("tests of a cut network need the program ip (Debian: apt install iproute2)")
    made = Namespace()
    try:
        try:
            made.make()
        except OSError as error:
            if os.environ.get("NAMESPACES_REQUIRED") == "1":
                raise
            pytest.skip(f"tests of a cut network need root and network namespaces: {error}")
        yield made
    finally:
        made.remove()
