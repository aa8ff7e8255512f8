"""Lists of XComs."""

from __future__ import annotations

from collections.abc import Sequence

from tradewind.model.moments import iso
from tradewind.store.search_patterns import begins, like
from tradewind.store.sql.asset_lists import AssetLists
from tradewind.store.sql.queries import Where, count, ordering, page
from tradewind.store.views import NO_CONDITIONS, Conditions, Listing, XComEntryView


class XComLists(AssetLists):
    """See `store.port.lists`."""

    def xcom_entries(
        self,
        dag_id: str = "~",
        run_id: str = "~",
        task_id: str = "~",
        *,
        conditions: Conditions = NO_CONDITIONS,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = (),
    ) -> Listing[XComEntryView]:
        where = Where()
        if dag_id != "~":
            self.need_dag(dag_id)
            where.add("r.dag_id = ?", dag_id)
        if run_id != "~" and dag_id != "~":
            where.add("x.run = ?", self.need_run(dag_id, run_id).id)
        elif run_id != "~":
            where.add("r.run_id = ?", run_id)
        if task_id != "~":
            where.add("x.task_id = ?", task_id)
        self._add_display_name(where, conditions)
        rest = Conditions(
            {name: one for name, one in conditions.patterns.items() if name != "dag_display_name"},
            {name: one for name, one in conditions.prefixes.items() if name != "dag_display_name"},
            conditions.among,
            conditions.ranges,
        )
        where.conditions(self.engine.dialect, _FIELDS, rest)
        order = ordering(self.engine.dialect, order_by or _NATURAL, _ORDERS, "x.run, x.task_id, x.map_index, x.key")
        source = f"FROM xcom x JOIN dag_run r ON r.id = x.run{where.sql}"
        rows = page(self.engine, f"SELECT {_XCOM} {source}{order}", where.parameters, limit, offset)
        total = count(self.engine, f"SELECT count(*) {source}", where.parameters)
        versions = self.shown_versions({row[7] for row in rows})
        return Listing(
            [
                XComEntryView(
                    key=key,
                    timestamp=iso(at) or "",
                    logical_date=iso(logical_date),
                    map_index=map_index,
                    task_id=task,
                    dag_id=dag,
                    run_id=run,
                    dag_display_name=versions[version].dag.shown_name,
                    task_display_name=versions[version].display_name(task),
                    run_after=iso(run_after) or "",
                )
                for key, at, logical_date, map_index, task, dag, run, version, run_after in rows
            ],
            total,
        )

    def _add_display_name(self, where: Where, conditions: Conditions) -> None:
        """Add the condition on the display name of a DAG. The name is in the definition, so the DAGs are found first."""
        pattern = conditions.patterns.get("dag_display_name")
        prefix = conditions.prefixes.get("dag_display_name")
        if not pattern and not prefix:
            return
        found = []
        rows = self.engine.rows("SELECT dag_id, version FROM dag")
        versions = self.shown_versions({row[1] for row in rows})
        for dag_id, version in rows:
            name = versions[version].dag.shown_name
            if begins(name, prefix) and (not pattern or pattern == "~" or like(pattern).search(name)):
                found.append(dag_id)
        if found:
            where.one_of("r.dag_id", found)
        else:
            where.add("1 = 0")


_XCOM = "x.key, x.at, r.logical_date, x.map_index, x.task_id, r.dag_id, r.run_id, r.version, r.run_after"
_NATURAL = ("dag_id", "task_id", "run_id", "map_index", "key")
_FIELDS = {
    "key": "x.key",
    "map_index": "x.map_index",
    "run_id": "r.run_id",
    "task_id": "x.task_id",
    "logical_date": "r.logical_date",
    "run_after": "r.run_after",
}
_ORDERS = {
    "key": "x.key",
    "dag_id": "r.dag_id",
    "run_id": "r.run_id",
    "task_id": "x.task_id",
    "map_index": "x.map_index",
    "timestamp": "x.at",
    "logical_date": "r.logical_date",
    "run_after": "r.run_after",
}
