"""The id of the running boot of the machine.

A pid, a process start time and a monotonic time are valid only within the boot in which they were read. So each is stored with the
boot id; if the id differs, the process no longer exists and the time is meaningless.
"""

from __future__ import annotations

import sys

_LINUX_BOOT_ID = "/proc/sys/kernel/random/boot_id"

_known: str | None = None


def boot_id() -> str:
    """The id of the running boot; equal in every process of one boot, different after a restart of the machine.

    Linux: the kernel's random boot id (containers have the host's id: the restart of a container is not a boot, and the monotonic
    clock continues too). macOS: the kernel's boot session. Other systems, or without /proc: the boot time in seconds. The boot time
    can change when the clock is corrected; then it looks like another boot, which is safe: leases count as expired, and orphaned
    processes are searched by their marker at the start.
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
    import ctypes  # lazy import: only needed on macOS

    size = ctypes.c_size_t(64)
    text = ctypes.create_string_buffer(size.value)
    failed = ctypes.CDLL(None).sysctlbyname(b"kern.bootsessionuuid", text, ctypes.byref(size), None, 0)
    return None if failed else text.value.decode("ascii") or None


def _boot_time() -> str:
    import psutil  # lazy import: takes 20 ms, only needed if the kernel has no boot id

    return f"boot-time-{int(psutil.boot_time())}"
