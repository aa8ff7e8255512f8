-- runs that were deleted and whose logs are still to be deleted; written with the deletion of the run
CREATE TABLE retired_log (
  dag_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (dag_id, run_id)
) WITHOUT ROWID;

-- the life of each service: scheduler, worker host, parser, web server
CREATE TABLE job (
  -- never given twice
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  -- names this life of the process; a service that connects again goes on under its own
  life TEXT NOT NULL UNIQUE,
  job_type TEXT NOT NULL,
  state TEXT NOT NULL,
  hostname TEXT NOT NULL,
  unixname TEXT NOT NULL,
  pid INTEGER NOT NULL,
  executor_class TEXT,
  started_at INTEGER NOT NULL,
  heartbeat_at INTEGER NOT NULL,
  ended_at INTEGER,
  reason TEXT
);
CREATE INDEX job_running ON job (id) WHERE state = 'running';
