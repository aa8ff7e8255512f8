"""Runs a function in a forked child, so that its imports and its memory end with the child. For processes that live long."""

from __future__ import annotations

import os
from collections.abc import Callable


def run_forked(work: Callable[[], bytes]) -> bytes | None:
    """Run `work` in a child process and return its result; None: the child failed.

    The caller must have no threads. It runs `work` itself to see the error of a failure, so `work` can be repeated.

    Raises:
        OSError: the system cannot create a pipe or a process.
    """
    reader, writer = os.pipe()
    try:
        child = os.fork()
    except OSError:
        os.close(reader)
        os.close(writer)
        raise
    if child == 0:
        _run_and_exit(work, writer)
    os.close(writer)
    with open(reader, "rb") as pipe:
        result = pipe.read()
    _, status = os.waitpid(child, 0)
    return result if status == 0 else None


def _run_and_exit(work: Callable[[], bytes], writer: int) -> None:
    status = 1
    try:
        with open(writer, "wb") as pipe:
            pipe.write(work())
        status = 0
    finally:
        os._exit(status)  # also after an exception: the parent's clean-up is not the child's
