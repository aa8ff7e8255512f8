"""Which boot of which machine is this?

A pid, a process start time or a monotonic moment means something only together with the boot it was read in. The boot
id is kept beside each of them; where it differs, everything it vouched for is gone.
"""

from __future__ import annotations

import sys

_LINUX_BOOT_ID = "/proc/sys/kernel/random/boot_id"

_known: str | None = None


def boot_id() -> str:
    """The id of the running boot; equal in every process of one boot, different after a restart of the machine.

    Linux: the kernel's random boot id (containers share the host's: a container's restart is not a boot, and the
    monotonic clock goes on too). macOS: the kernel's boot session. Elsewhere, or without /proc: the boot time in
    seconds as the system tells it. That last one may differ by clock corrections; the error is then on the safe side of
    "another boot": leases count as void, and the start-up sweep looks for strays by marker.
    """
    global _known
    if _known is None:
        _known = _linux(_LINUX_BOOT_ID) or _macos() or _boot_time()
    return _known


def _linux(path: str) -> str | None:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _macos() -> str | None:
    if sys.platform != "darwin":
        return None
    import ctypes  # lazy import: only macOS asks the kernel this way

    size = ctypes.c_size_t(64)
    text = ctypes.create_string_buffer(size.value)
    failed = ctypes.CDLL(None).sysctlbyname(b"kern.bootsessionuuid", text, ctypes.byref(size), None, 0)
    return None if failed else text.value.decode("ascii") or None


def _boot_time() -> str:
    import psutil  # lazy import: 20 ms of import, needed only where the kernel has no boot id

    return f"boot-time-{int(psutil.boot_time())}"
