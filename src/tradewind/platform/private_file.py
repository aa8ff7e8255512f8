"""Files and folders that only their owner can read: keys, passwords, sockets, spools."""

from __future__ import annotations

import os
import stat


def create_private_file(path: str, content: bytes) -> bool:
    """Create `path` with mode 0600 and `content`, and sync it to the disk, unless it exists. Its folder must exist.

    If several processes call this at the same time, exactly one creates the file, and the others see the whole file.

    Returns:
        True if this call created the file, False if it existed.

    Raises:
        OSError: the folder is missing, read-only or full.
    """
    draft = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.new"
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        try:
            os.fchmod(fd, 0o600)  # an unusual umask must not remove the owner's permission
            with open(fd, "wb", closefd=False) as file:
                file.write(content)
            os.fsync(fd)
        finally:
            os.close(fd)
        try:
            os.link(draft, path)  # unlike rename, link never replaces a file that another process has just created
        except FileExistsError:
            return False
    finally:
        os.unlink(draft)
    sync_folder(os.path.dirname(path) or ".")
    return True


def private_folder(path: str) -> str:
    """Create `path` and its missing parent folders with mode 0700, and return it. Existing folders are not changed.

    Raises:
        OSError: a parent is not a folder, or is not writable.
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
            os.chmod(folder, 0o700)  # as above: the umask may have removed too much
    return path


def make_private(path: str) -> bool:
    """Remove the permissions of others from an existing file or folder of this user. Returns True if the mode changed.

    A missing path, a symbolic link, and files of other users are not changed.
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
    """Why others could read or change the existing file or folder `path`, in words; None if only its owner can.

    Symbolic links are not followed: a link is itself a reason.
    """
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        return "it is a symbolic link"
    if found.st_uid != os.geteuid():
        return f"it belongs to user id {found.st_uid}, not to {os.geteuid()}"
    if stat.S_IMODE(found.st_mode) & 0o077:
        return f"its mode is {stat.S_IMODE(found.st_mode):04o}, which gives others access"
    return None


def sync_folder(folder: str) -> None:
    """Sync the entries of a folder to the disk."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
