"""Failpoints: places in the source where a test can make a process fail on purpose.

`fp("scheduler.after_commit")` marks such a place. By default no failpoint is armed, and the call costs one comparison. These
environment variables arm failpoints; they are read once, when this module is imported:

`TRADEWIND_FAILPOINTS="name=action;other=action@3"`: the action when the process passes a failpoint.

    kill9       send SIGKILL to this process
    exit[:CODE] exit at once with this status (default 70), without clean-up
    hang        never return
    raise       raise FailpointHit
    sleep:MS    continue after this many milliseconds

    @3  only at the third pass, counted in each process (a forked child continues its parent's count)
    @3+ at the third and every later pass; without @, at every pass
    #3  only at the third pass, counted over all processes that share the folder of the next variable

`TRADEWIND_FAILPOINTS_ONCE=/some/folder`: each failpoint acts once for all processes that share the folder, so that a process that
was killed and restarted survives.

`TRADEWIND_DROP_WAKEUPS="submit,report"`: `drop("submit", what)` is true once for each `what`, and then its caller leaves out the
wake-up. Tests use this to prove that the safety net works.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Any

_ACTIONS = ("kill9", "exit", "hang", "raise", "sleep")


class FailpointHit(Exception):
    """The process passed a failpoint with the action `raise`."""


class _Action:
    __slots__ = ("argument", "at", "later_too", "passes", "shared", "verb")

    def __init__(self, verb: str, argument: int, at: int, later_too: bool, shared: bool) -> None:
        self.verb = verb
        self.argument = argument
        self.at = at
        self.later_too = later_too
        self.shared = shared
        self.passes = 0


_armed: dict[str, _Action] | None = None
_once_folder: str | None = None
_dropped: frozenset[str] | None = None
_loses: Callable[[str, Hashable], bool] | None = None
_left_out: set[tuple[str, Hashable]] = set()


def fp(name: str) -> None:
    """Execute the action that is armed for this failpoint; nothing if it is not armed.

    Raises:
        FailpointHit: the action is `raise`.
    """
    if _armed is None:
        return
    _pass(name, _armed)


def drop(name: str, what: Hashable) -> bool:
    """Whether the caller must leave out this wake-up. False unless a test drops it.

    `what` is the object of the wake-up. Only the first wake-up of each object is dropped; later ones come from the safety net.
    """
    if _loses is not None:
        return _loses(name, what)
    if _dropped is None or name not in _dropped or (name, what) in _left_out:
        return False
    _left_out.add((name, what))
    return True


class _Listening(dict[str, _Action]):
    """Replaces the armed actions: calls a listener with the name of every failpoint that is passed."""

    def __init__(self, listener: Callable[[str], None]) -> None:
        self._listener = listener

    def get(self, name: str, default: Any = None) -> Any:
        self._listener(name)
        return default


def listen(listener: Callable[[str], None] | None, loses: Callable[[str, Hashable], bool] | None = None) -> None:
    """Call `listener` at every failpoint that is passed, instead of the armed actions; None ends this. Its exceptions propagate.

    The simulation crashes its scheduler in this way, with an exception that no `except Exception` catches.

    Args:
        loses: called instead of `drop`.
    """
    global _armed, _loses
    _armed = None if listener is None else _Listening(listener)
    _loses = loses


def passes(name: str) -> int:
    """How often this process has passed the armed failpoint `name`; 0 if it is not armed."""
    return _armed[name].passes if _armed is not None and name in _armed else 0


def arm(env: Mapping[str, str]) -> None:
    """Arm the failpoints in `env` and disarm all others.

    Raises:
        ValueError: a text is not valid; the message names the variable and the part.
    """
    global _armed, _once_folder, _dropped
    _armed = _parse(env.get("TRADEWIND_FAILPOINTS", "")) or None
    _once_folder = env.get("TRADEWIND_FAILPOINTS_ONCE") or None
    _left_out.clear()
    _dropped = frozenset(filter(None, (n.strip() for n in env.get("TRADEWIND_DROP_WAKEUPS", "").split(",")))) or None


def _parse(text: str) -> dict[str, _Action]:
    actions: dict[str, _Action] = {}
    for part in filter(None, (p.strip() for p in text.split(";"))):
        name, equals, action = part.partition("=")
        shared = "#" in action
        action, at_sign, at = action.partition("#" if shared else "@")
        verb, colon, argument = action.partition(":")
        later_too = not at_sign or at.endswith("+")
        at = at.removesuffix("+") if at_sign else "1"
        valid = (
            name
            and equals
            and verb in _ACTIONS
            and (not colon or verb in ("exit", "sleep"))
            and (argument.isdecimal() if colon else verb != "sleep")
            and at.isdecimal()
            and int(at) > 0
            and not (shared and later_too)
        )
        if not valid:
            raise ValueError(
                f"TRADEWIND_FAILPOINTS: cannot read {part!r}; "
                "write name=kill9|exit[:CODE]|hang|raise|sleep:MS, optionally with @PASS, @PASS+ or #PASS"
            )
        actions[name] = _Action(verb, int(argument or 70), int(at), later_too, shared)
    return actions


def _pass(name: str, armed: dict[str, _Action]) -> None:
    action = armed.get(name)
    if action is None:
        return
    action.passes = _shared_pass(_once_folder, name) if action.shared and _once_folder is not None else action.passes + 1
    if action.passes < action.at or (action.passes > action.at and not action.later_too):
        return
    if _once_folder is not None and not _first(_once_folder, name):
        return
    if action.verb == "kill9":
        os.kill(os.getpid(), 9)
    elif action.verb == "exit":
        os._exit(action.argument)
    elif action.verb == "hang":
        while True:
            time.sleep(3600)
    elif action.verb == "raise":
        raise FailpointHit(f"failpoint {name!r}, pass {action.passes}")
    else:
        time.sleep(action.argument / 1000)


def _shared_pass(folder: str, name: str) -> int:
    """The number of this pass, counted over all processes that share `folder`."""
    file = os.open(os.path.join(folder, f"{name}.passes"), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    try:
        os.write(file, b".")
        return os.lseek(
            file, 0, os.SEEK_CUR
        )  # the position after the byte just written, also if other processes write at the same time
    finally:
        os.close(file)


def _first(folder: str, name: str) -> bool:
    """Whether this process is the first of all that share `folder` to act at `name`."""
    try:
        os.close(os.open(os.path.join(folder, name), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    return True


arm(os.environ)
