"""RunSlots in our own code where a test may break it on purpose.

`fp("scheduler.after_commit")` stands at a moment worth dying at. Nothing is armed unless the environment says so, and
the call then costs one comparison. These variables arm them, read once when this module is imported:

`TRADEWIND_FAILPOINTS="name=action;other=action@3"`: what to do when a named place is passed.

    kill9       SIGKILL to this process
    exit[:CODE] end at once with that status (70 unless told), no clean-up
    hang        never come back
    raise       FailpointHit
    sleep:MS    go on after so many milliseconds

    @3  only the third pass, counted in each process (a forked child goes on from its parent's count)
    @3+ the third and every later one; without @, every one
    #3  only the third pass, counted over all processes that share the folder of the next variable

`TRADEWIND_FAILPOINTS_ONCE=/some/folder`: each named place acts once for everything that shares the folder, so a
process that was killed and started again lives on.

`TRADEWIND_DROP_WAKEUPS="submit,report"`: `drop("submit", what)` is true the first time for each thing, and its caller leaves
out that wake-up. Tests use it to show that only the safety net remains.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Any

_ACTIONS = ("kill9", "exit", "hang", "raise", "sleep")


class FailpointHit(Exception):
    """A failpoint with the action `raise` was passed."""


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
    """Do what a test has armed for `name`; without one, nothing.

    Raises:
        FailpointHit: armed with `raise`.
    """
    if _armed is None:
        return
    _pass(name, _armed)


def drop(name: str, what: Hashable) -> bool:
    """Must the caller leave out this wake-up? False unless a test cuts it.

    `what` is the thing of which the other side should hear. Its first wake-up is left out; later ones are the safety net's.
    """
    if _loses is not None:
        return _loses(name, what)
    if _dropped is None or name not in _dropped or (name, what) in _left_out:
        return False
    _left_out.add((name, what))
    return True


class _Heard(dict[str, _Action]):
    """In the place of armed actions: tells a listener of every place that is passed."""

    def __init__(self, listener: Callable[[str], None]) -> None:
        self._listener = listener

    def get(self, name: str, default: Any = None) -> Any:
        self._listener(name)
        return default


def listen(listener: Callable[[str], None] | None, loses: Callable[[str, Hashable], bool] | None = None) -> None:
    """Call `listener` at every place that is passed, instead of what is armed; None ends that. What it raises goes through.

    A simulation crashes its scheduler this way, with an exception that no `except Exception` catches.

    Args:
        loses: answers in the place of `drop`.
    """
    global _armed, _loses
    _armed = None if listener is None else _Heard(listener)
    _loses = loses


def passes(name: str) -> int:
    """How often this process passed the armed failpoint `name`; 0 for one that is not armed."""
    return _armed[name].passes if _armed is not None and name in _armed else 0


def arm(env: Mapping[str, str]) -> None:
    """Arm what `env` says and disarm everything else.

    Raises:
        ValueError: a text that cannot be read; it names the variable and the part.
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
    """Which pass of all processes that share `folder` is this one?"""
    file = os.open(os.path.join(folder, f"{name}.passes"), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    try:
        os.write(file, b".")
        return os.lseek(file, 0, os.SEEK_CUR)  # behind the byte just written, whoever writes beside us
    finally:
        os.close(file)


def _first(folder: str, name: str) -> bool:
    """Am I the first of all processes that share `folder` to act at `name`?"""
    try:
        os.close(os.open(os.path.join(folder, name), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    return True


arm(os.environ)
