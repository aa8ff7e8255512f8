"""Lists for the API and the command line, with Airflow 3's field names (`store.views`).

Theory of operation: the database may hold millions of runs and tens of millions of task instances. So a list reads an index in the
requested order and stops at the end of the page. Unfinished task instances are searched only in runs that have not ended, failures
have their own index, and a total that would take too long is left out. A query that no index serves is cancelled after a few
seconds (`TooBroad`).
"""

from __future__ import annotations

from tradewind.store.sql.hitl_lists import HitlLists
from tradewind.store.sql.page_lookups import PageLookups


class ListOperations(PageLookups, HitlLists):
    """DAGs, versions, runs, task instances, tries, attempts, questions, logs, import errors, pools, assets, audit log, health,
    and the data of the web page."""
