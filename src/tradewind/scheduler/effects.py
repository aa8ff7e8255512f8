"""What a command changed, for the live scheduler's memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from tradewind.wire.messages import AttemptKey


@dataclass(slots=True)
class Effects:
    """Ids of DAGs and numbers of runs to be read anew, and what became of pools."""

    dags: set[str] = field(default_factory=set)
    runs: set[int] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    """DAGs whose file was read anew, changed or not."""
    pools: bool = False
    gone_pools: set[str] = field(default_factory=set)
    callbacks: bool = False
    """Some are due now."""
    lookups: set[str] = field(default_factory=set)
    """Variables and connections that were set or deleted: `variable bucket`, `connection db`."""
    stops: list[tuple[AttemptKey, str]] = field(default_factory=list)
    """Attempts whose result does not count any more, and why: they are to be stopped."""
    noted: dict[int, str | None] = field(default_factory=dict)
    """Runs whose note was changed → the note."""
