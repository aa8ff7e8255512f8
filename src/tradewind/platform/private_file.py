"""Files and folders that only their owner may read: keys, passwords, sockets, spools."""

from __future__ import annotations

import os
import stat


def create_private_file(path: str, content: bytes) -> bool:
    """Create `path` with mode 0600 and all of `content`, durably, unless it exists.

    Several processes may race: exactly one creates it, the others see the whole file, never a half of it. Its folder
    must exist.

    Returns:
        True when this call created it, False when it was there.

    Raises:
        OSError: the folder is missing, read-only or full.
    """
    draft = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.new"
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        try:
            os.fchmod(fd, 0o600)  # a strange umask must not take the owner's own right away
            with open(fd, "wb", closefd=False) as file:
                file.write(content)
            os.fsync(fd)
        finally:
            os.close(fd)
        try:
            os.link(draft, path)  # unlike rename, link never replaces what another process has just created
        except FileExistsError:
            return False
    finally:
        os.unlink(draft)
    sync_folder(os.path.dirname(path) or ".")
    return True


def private_folder(path: str) -> str:
    """Make `path` and every missing folder above it with mode 0700; return it.

    Folders that exist are left as they are.

    Raises:
        OSError: something above it is not a folder, or may not be written.
    """
    missing = []
    folder = os.path.abspath(path)
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for folder in reversed(missing):
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            if not os.path.isdir(folder):
                raise
        else:
            os.chmod(folder, 0o700)  # as above: the umask may have taken too much
    return path


def make_private(path: str) -> bool:
    """Take from an existing file or folder of ours what others may do with it; True when that changed something.

    A missing path, a symbolic link and what belongs to somebody else are left alone.
    """
    try:
        found = os.lstat(path)
        mode = stat.S_IMODE(found.st_mode)
        if found.st_uid != os.geteuid() or not mode & 0o077 or not (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):
            return False
        os.chmod(path, mode & ~0o077)
    except OSError:
        return False
    return True


def exposure(path: str) -> str | None:
    """Why others could meddle with the existing file or folder `path`, in words; None when only its owner can.

    Symbolic links are not followed: a link is itself a reason. Reading and listing by others counts.
    """
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        return "it is a symbolic link"
    if found.st_uid != os.geteuid():
        return f"it belongs to user id {found.st_uid}, not to {os.geteuid()}"
    if stat.S_IMODE(found.st_mode) & 0o077:
        return f"its mode is {stat.S_IMODE(found.st_mode):04o}, which lets others in"
    return None


def sync_folder(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
