"""Which DAGs an account may read. Decided from the team of each DAG and from the `access_control` of its file."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

from tradewind.api.auth.permissions import Access, DagAccess, team_of
from tradewind.api.auth.policy import Policy
from tradewind.model.accounts import TeamDags
from tradewind.model.moments import SECOND
from tradewind.platform.clock import Clock
from tradewind.store.port import Reader

READ_DAG = Policy("read", "dag")
_VERSIONS_KEPT = 20_000
_VISIBLE_KEPT = 64
VISIBLE_FOR = SECOND
"""How long the set of DAGs of an account is cached. A request for a single DAG always reads the present rows."""

_AccessKey = tuple[object, ...]


class DagAccessIndex:
    """Caches values that cannot change: `access_control` by version of a DAG. Safe for several threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._by_version: OrderedDict[int, dict[str, tuple[str, ...]]] = OrderedDict()
        self._visible: OrderedDict[_AccessKey, tuple[int, frozenset[str]]] = OrderedDict()

    def of(self, reader: Reader, assigned: Sequence[TeamDags], dag_ids: Sequence[str] | None = None) -> list[DagAccess]:
        """The team and the `access_control` of these DAGs, or of all DAGs. For an id that does not exist, only the name counts.

        Args:
            reader: a reader that sees all DAGs.
            assigned: the DAGs of all teams.
        """
        bundles = {dag.dag_id: dag for dag in reader.dag_bundles(dag_ids)}
        found = []
        for dag_id in bundles if dag_ids is None else dag_ids:
            dag = bundles.get(dag_id)
            bundle = "" if dag is None else dag.bundle
            access_control = {} if dag is None else self._access_control(reader, dag.version)
            found.append(DagAccess(dag_id, bundle, team_of(dag_id, bundle, assigned), access_control))
        return found

    def permitted(self, reader: Reader, assigned: Sequence[TeamDags], access: Access, policy: Policy) -> frozenset[str]:
        """The DAGs for which an account has this permission. `reader`, `assigned`: as in `of`."""
        return frozenset(dag.dag_id for dag in self.of(reader, assigned) if access.may_on(policy, dag))

    def visible(self, reader: Reader, assigned: Sequence[TeamDags], access: Access) -> frozenset[str]:
        """The DAGs that an account may read, at most `VISIBLE_FOR` old. `reader`, `assigned`: as in `of`."""
        key = (*access[:2], *sorted(access.teams.items()), access.grants, access.limit, tuple(assigned))
        now = self._clock.monotonic()
        with self._lock:
            kept = self._visible.get(key)
        if kept is not None and now - kept[0] < VISIBLE_FOR:
            return kept[1]
        found = self.permitted(reader, assigned, access, READ_DAG)
        with self._lock:
            self._visible[key] = (now, found)
            while len(self._visible) > _VISIBLE_KEPT:
                self._visible.popitem(last=False)
        return found

    def _access_control(self, reader: Reader, version: int) -> dict[str, tuple[str, ...]]:
        with self._lock:
            known = self._by_version.get(version)
        if known is None:
            known = reader.access_control(version)
            with self._lock:
                self._by_version[version] = known
                while len(self._by_version) > _VERSIONS_KEPT:
                    self._by_version.popitem(last=False)
        return known
