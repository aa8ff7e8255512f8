-- A run of a versioned bundle keeps the version that it was made for; where this is NULL, it follows the newest version of its DAG.

ALTER TABLE dag_run ADD COLUMN bundle_version TEXT COLLATE "C";

-- the version under which an attempt was dispatched that still runs (or waits), where its run has followed a newer one since; else NULL

ALTER TABLE task_instance ADD COLUMN version BIGINT;
