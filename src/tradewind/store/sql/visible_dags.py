"""The rows that a reader sees if it is limited to some DAGs (`DatabaseReader.show_only`).

The limit is a condition on each table. A view with the table's name applies it, so it also limits queries that are added later:
lists, counts and single rows. `tests/unit/store/test_visible_dags.py` fails for a table with DAGs or runs that is not in this list.
"""

from __future__ import annotations

_DAG = "{column} IN (SELECT dag_id FROM {visible})"
_RUN = (
    "EXISTS (SELECT 1 FROM {main}dag_run visible_run "
    "WHERE visible_run.id = {table}.run AND visible_run.dag_id IN (SELECT dag_id FROM {visible}))"
)

_SOURCE = "({table}.source_dag IS NULL OR {table}.source_dag IN (SELECT dag_id FROM {visible}))"

_BY_DAG = (
    "dag",
    "dag_version",
    "dag_run",
    "dag_favorite",
    "backfill",
    "skipped_interval",
    "asset_reference",
    "asset_delivery",
    "audit",
    "deadline_miss",
    "retired_log",
)
_BY_RUN = (
    "task_instance",
    "attempt",
    "journal",
    "feed",
    "xcom",
    "deferral",
    "outbox",
    "hitl_detail",
    "run_summary",
    "task_state_store",
)

CONDITIONS: dict[str, str] = {
    **{table: _DAG.format(column="dag_id", visible="{visible}") for table in _BY_DAG},
    **dict.fromkeys(_BY_RUN, _RUN),
    "backfill_run": (
        "EXISTS (SELECT 1 FROM {main}backfill visible_backfill WHERE visible_backfill.id = {table}.backfill "
        "AND visible_backfill.dag_id IN (SELECT dag_id FROM {visible}))"
    ),
    # an event without a source was recorded by a person
    "asset_event": _SOURCE,
    "asset_state_store": _SOURCE,
    # a traceback shows code of all DAGs of its file; a file that never had a DAG belongs to nobody yet
    "import_error": (
        "EXISTS (SELECT 1 FROM {main}dag visible_dag WHERE visible_dag.bundle = {table}.bundle "
        "AND visible_dag.file = {table}.file) "
        "AND NOT EXISTS (SELECT 1 FROM {main}dag hidden_dag WHERE hidden_dag.bundle = {table}.bundle "
        "AND hidden_dag.file = {table}.file AND hidden_dag.dag_id NOT IN (SELECT dag_id FROM {visible}))"
    ),
}
"""Table → its condition. `{main}`: prefix of the whole tables; `{table}`: the whole table; `{visible}`: the table of DAG ids."""
