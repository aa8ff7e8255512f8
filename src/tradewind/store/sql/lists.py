"""Verbs that only look: lists for people, with Airflow 3's field names (`store.views`).

They serve the API and the command line from any process. Theory of operation: history may hold millions of runs and tens of
millions of task instances, so a list is answered by walking an index in the order asked for and stopping at the page's end.
What is on its way is sought only in runs that have not ended, failures have an index of their own, and totals that would
take too long are left out. A question that no index serves is given up after some seconds with a sentence (`TooBroad`).
"""

from __future__ import annotations

from tradewind.store.sql.asset_lists import AssetLists


class ListOperations(AssetLists):
    """DAGs, versions, runs, task instances, tries, attempts, log files, import errors, pools, assets, audit log, health."""
