"""What a command changed, for the live scheduler's memory."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Effects:
    """Ids of DAGs and numbers of runs to be read anew, and what became of pools."""

    dags: set[str] = field(default_factory=set)
    runs: set[int] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    """DAGs whose file was read anew, changed or not."""
    pools: bool = False
    gone_pools: set[str] = field(default_factory=set)
    lookups: set[str] = field(default_factory=set)
    """Variables and connections that were set or deleted: `variable bucket`, `connection db`."""
