"""Describes in words how a process ended."""

from __future__ import annotations

import signal


def signal_name(number: int) -> str:
    """`SIGKILL` for 9; `signal 77` for a number without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def how_it_ended(code: int) -> str:
    """Describe an exit code of subprocess, where a negative code is the number of the signal that killed the process."""
    if code >= 0:
        return f"exit code {code}"
    hint = " (out of memory?)" if -code == signal.SIGKILL else ""
    return f"killed by {signal_name(-code)}{hint}"
