"""The graph of a run whose rows may have been created under another version of its DAG."""

from __future__ import annotations

from tradewind.kernel.layout import fits, layout
from tradewind.kernel.topology import Topology
from tradewind.model.rows import RunSnapshot


def fitted(topology: Topology, snapshot: RunSnapshot) -> Topology:
    """Return the graph of a run: `topology` itself, or one with the slots of the run's rows if the rows are in another order."""
    rows = snapshot.rows
    if fits(topology.definition, rows):
        return topology
    return Topology(topology.definition, layout(topology.definition, rows))
