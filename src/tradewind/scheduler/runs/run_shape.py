"""The shape of a run as its rows stand, which may have been begun under another version of its DAG."""

from __future__ import annotations

from tradewind.kernel.layout import fits, layout
from tradewind.kernel.topology import Topology
from tradewind.model.rows import RunSnapshot


def fitted(topology: Topology, snapshot: RunSnapshot) -> Topology:
    """The shape of a run: that of its version, unless its rows were begun under another one."""
    rows = snapshot.rows
    if fits(topology.definition, rows):
        return topology
    return Topology(topology.definition, layout(topology.definition, rows))
