"""The list of a bundle's files with their hashes, and the version that is computed from the list. Pure."""

from __future__ import annotations

import hashlib
import re

import msgspec

FILES_MAX = 20_000
"""Maximum number of files of one bundle that are sent to workers."""
BYTES_MAX = 64 * 1024 * 1024
"""Maximum size of these files together, bytes."""
_HASH = re.compile(r"[0-9a-f]{64}")


class BundleFile(msgspec.Struct, frozen=True, array_like=True):
    """One file of a bundle."""

    path: str
    """Path relative to the bundle, with forward slashes."""
    sha256: str
    """SHA-256 of the content, in hexadecimal digits."""
    size: int
    executable: bool = False


def version_of(files: tuple[BundleFile, ...]) -> str:
    """Return the version of a bundle with these files: the same files in any order have the same version."""
    document = msgspec.msgpack.encode(sorted(files, key=lambda one: one.path))
    return hashlib.sha256(document).hexdigest()


def manifest_problem(files: tuple[BundleFile, ...]) -> str:
    """Why a list of files cannot be used; empty: it can. A worker checks the list before it writes anything."""
    if len(files) > FILES_MAX:
        return f"it has {len(files):,} files; at most {FILES_MAX:,} are sent to workers"
    if (total := sum(one.size for one in files)) > BYTES_MAX:
        return f"its files have {total:,} bytes; at most {BYTES_MAX:,} are sent to workers"
    seen = set()
    for one in files:
        parts = one.path.split("/")
        if one.size < 0 or "\0" in one.path or any(part in ("", ".", "..") for part in parts) or one.path in seen:
            return f"{one.path!r} is no path of a file in a bundle"
        if not is_hash(one.sha256):
            return f"{one.sha256!r} is no SHA-256"
        seen.add(one.path)
    return ""


def is_hash(text: str) -> bool:
    """Whether this is a SHA-256 in hexadecimal digits, and so not a path."""
    return _HASH.fullmatch(text) is not None
