-- deadlines that were missed: a task's sla, or an alert of the DAG
CREATE TABLE deadline_miss (
  id INTEGER PRIMARY KEY,
  run INTEGER NOT NULL,
  dag_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  -- empty: the run itself
  task_id TEXT NOT NULL DEFAULT '',
  name TEXT NOT NULL,
  label TEXT,
  due_at INTEGER NOT NULL,
  noticed_at INTEGER NOT NULL,
  UNIQUE (run, name, task_id, due_at)
);
CREATE INDEX deadline_miss_dag ON deadline_miss (dag_id, id);
