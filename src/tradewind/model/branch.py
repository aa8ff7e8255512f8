"""What a branching task decided."""

from __future__ import annotations

import msgspec


class Branch(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a branching task decided.

    `follow`: the named direct downstream tasks go on, the others are skipped. `skip`: the named tasks are skipped.
    `stop`: all downstream tasks are skipped (with `direct_only`, the direct ones): a short circuit that is open.
    """

    kind: str
    tasks: tuple[str, ...] = ()
    direct_only: bool = False
