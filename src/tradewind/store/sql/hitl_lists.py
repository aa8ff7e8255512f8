"""Lists of the questions of tasks to people (human in the loop)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tradewind.model.errors import NotFound
from tradewind.model.moments import iso
from tradewind.store.port.lists import HitlFilter
from tradewind.store.sql.engine import Row
from tradewind.store.sql.queries import Where, count, ordering, page
from tradewind.store.sql.task_lists import ATTEMPT_JOIN, INSTANCE_COLUMNS, TASK_ORDERS, TaskLists, task_code
from tradewind.store.views import HitlDetailView, HitlTryView, HitlUserView, Listing, TryView

_DETAIL = """h.subject, h.body, h.options, h.defaults, h.multiple, h.params, h.assigned_users, h.created_at, h.responded_at,
    h.responded_by_id, h.responded_by_name, h.chosen_options, h.params_input"""
_DETAIL_WIDTH = 13

_SOURCE = """hitl_detail h JOIN task_instance t ON t.run = h.run AND t.slot = h.slot AND t.try_number = h.try_number
    JOIN dag_run r ON r.id = h.run"""
"""Only the question of the current try is the question of the task instance."""

_ORDERS = {
    **{name: TASK_ORDERS[name] for name in ("dag_id", "run_id", "task_id", "map_index", "run_after")},
    "ti_id": "h.run, h.slot",
    "subject": "h.subject",
    "responded_at": "h.responded_at",
    "created_at": "h.created_at",
    "responded_by_user_id": "h.responded_by_id",
    "responded_by_user_name": "h.responded_by_name",
    "task_display_name": "t.task_id",
    "rendered_map_index": "t.map_index",
    "task_instance_state": "t.state",
}


class HitlLists(TaskLists):
    """See `store.port.lists`."""

    def hitl_details(
        self, wanted: HitlFilter, *, limit: int | None = 50, offset: int = 0, order_by: Sequence[str] = ()
    ) -> Listing[HitlDetailView]:
        where = self._where(wanted)
        order = ordering(self.engine.dialect, order_by or ("created_at",), _ORDERS, "h.run, h.slot")
        rows = page(
            self.engine,
            f"SELECT {_DETAIL}, {INSTANCE_COLUMNS} FROM {_SOURCE}{ATTEMPT_JOIN}{where.sql}{order}",
            where.parameters,
            limit,
            offset,
        )
        total = count(self.engine, f"SELECT count(*) FROM {_SOURCE}{where.sql}", where.parameters)
        instances = self.instance_views([row[_DETAIL_WIDTH:] for row in rows])
        return Listing(
            [HitlDetailView(**_fields(row), task_instance=one) for row, one in zip(rows, instances, strict=True)], total
        )

    def hitl_detail(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> HitlDetailView:
        instance = self.instance_row(dag_id, run_id, task_id, map_index)
        row = self._detail_row(instance, instance[9])
        return HitlDetailView(**_fields(row), task_instance=self.instance_view(instance))

    def hitl_try(self, dag_id: str, run_id: str, task_id: str, map_index: int, try_number: int) -> HitlTryView:
        row = self._detail_row(self.instance_row(dag_id, run_id, task_id, map_index), try_number)
        tries = self.task_tries(dag_id, run_id, task_id, map_index)
        attempt = next(one for one in tries if one.try_number == try_number)
        shown = {name: getattr(attempt, name) for name in TryView.__struct_fields__}
        return HitlTryView(**_fields(row), task_instance=TryView(**shown))

    def _detail_row(self, instance: Row, try_number: int) -> Row:
        row = self.engine.row(
            f"SELECT {_DETAIL} FROM hitl_detail h WHERE h.run = ? AND h.slot = ? AND h.try_number = ?",
            (instance[0], instance[1], try_number),
        )
        if row is None:
            raise NotFound(
                f"Human-in-the-loop detail does not exist for the task instance {instance[4]} in {instance[6]} of DAG "
                f"{instance[2]} in try {try_number}: it has asked nothing"
            )
        return row

    def _where(self, wanted: HitlFilter) -> Where:
        where = Where()
        if wanted.dag_id != "~":
            self.need_dag(wanted.dag_id)
            where.add("r.dag_id = ?", wanted.dag_id)
        if wanted.run_id != "~" and wanted.dag_id != "~":
            where.add("h.run = ?", self.need_run(wanted.dag_id, wanted.run_id).id)
        elif wanted.run_id != "~":
            where.add("r.run_id = ?", wanted.run_id)
        where.pattern(self.engine.dialect, "r.dag_id", wanted.dag_id_pattern)
        where.prefix("r.dag_id", wanted.dag_id_prefix)
        if wanted.task_id is not None:
            where.add("t.task_id = ?", wanted.task_id)
        where.pattern(self.engine.dialect, "t.task_id", wanted.task_id_pattern)
        where.prefix("t.task_id", wanted.task_id_prefix)
        if wanted.map_index is not None:
            where.add("t.map_index = ?", wanted.map_index)
        where.one_of("t.state", [task_code(state) for state in wanted.states])
        if wanted.answered is not None:
            where.add(f"h.responded_at IS {'NOT ' if wanted.answered else ''}NULL")
        where.one_of("h.responded_by_id", list(wanted.user_ids))
        where.one_of("h.responded_by_name", list(wanted.user_names))
        where.pattern(self.engine.dialect, "h.subject", wanted.subject)
        where.pattern(self.engine.dialect, "h.body", wanted.body)
        where.ranges({"created_at": "h.created_at"}, wanted.ranges)
        return where


def _fields(row: Row) -> dict[str, Any]:
    """The fields of a question, from the columns of `_DETAIL`."""
    params = msgspec.json.decode(row[5])
    return {
        "subject": row[0],
        "body": row[1],
        "options": msgspec.json.decode(row[2]),
        "defaults": None if row[3] is None else msgspec.json.decode(row[3]),
        "multiple": bool(row[4]),
        "params": {name: _param(given) for name, given in params.items()},
        "assigned_users": msgspec.json.decode(row[6], type=list[HitlUserView]),
        "created_at": iso(row[7]) or "",
        "responded_at": iso(row[8]),
        "responded_by_user": None if row[9] is None else HitlUserView(id=row[9], name=row[10] or row[9]),
        "chosen_options": None if row[11] is None else msgspec.json.decode(row[11]),
        "params_input": {} if row[12] is None else msgspec.json.decode(row[12]),
        "response_received": row[8] is not None,
    }


def _param(given: Any) -> Any:
    known = isinstance(given, dict) and {"value", "description", "schema"} <= given.keys()
    return given if known else {"value": given, "description": None, "schema": {}}
