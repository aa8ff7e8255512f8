"""The decision of a branching task."""

from __future__ import annotations

import msgspec


class Branch(msgspec.Struct, frozen=True, omit_defaults=True):
    """The decision of a branching task.

    kind: `follow`: the named direct downstream tasks continue, the others are skipped. `skip`: the named tasks are skipped.
    `stop`: all downstream tasks are skipped (with `direct_only` only the direct ones), as by a ShortCircuitOperator.
    """

    kind: str
    tasks: tuple[str, ...] = ()
    direct_only: bool = False
