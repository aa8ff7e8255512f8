-- The first schema. Moments and durations are integer microseconds UTC; states are the codes of model/states.py.
-- Shaped for what comes: map_index, bundles, teams, partitions, backfills, assets, triggers, several schedulers.

CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE dag (
  dag_id TEXT PRIMARY KEY,
  bundle TEXT NOT NULL DEFAULT 'dags',
  team TEXT,
  file TEXT NOT NULL,
  version INTEGER NOT NULL,
  is_paused INTEGER NOT NULL,
  is_active INTEGER NOT NULL DEFAULT 1,
  missing_since INTEGER,
  has_import_error INTEGER NOT NULL DEFAULT 0,
  schedule_epoch INTEGER NOT NULL DEFAULT 1,
  -- the next scheduled run: its times, NULL when there is none
  next_logical_date INTEGER,
  next_start INTEGER,
  next_end INTEGER,
  next_run_after INTEGER,
  -- the latest scheduled run created, from which the next one follows
  last_logical_date INTEGER,
  last_start INTEGER,
  last_end INTEGER,
  last_run_after INTEGER,
  max_active_runs INTEGER NOT NULL,
  -- what next_run() needs, so that the scheduler plans without reading whole definitions
  schedule BLOB NOT NULL,
  start_date INTEGER,
  end_date INTEGER,
  catchup INTEGER NOT NULL DEFAULT 0,
  schedule_summary TEXT,
  description TEXT,
  owners TEXT NOT NULL DEFAULT '',
  tags TEXT NOT NULL DEFAULT '[]',
  task_count INTEGER NOT NULL DEFAULT 0,
  last_parsed_at INTEGER,
  parse_duration INTEGER,
  file_hash TEXT,
  is_dynamic INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX dag_file ON dag (bundle, file);

CREATE TABLE dag_version (
  id INTEGER PRIMARY KEY,
  dag_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  hash TEXT NOT NULL,
  bundle TEXT NOT NULL,
  bundle_version TEXT,
  definition BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  UNIQUE (dag_id, number)
);
CREATE INDEX dag_version_hash ON dag_version (dag_id, hash);

CREATE TABLE dag_run (
  id INTEGER PRIMARY KEY,
  dag_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  run_type TEXT NOT NULL,
  state INTEGER NOT NULL,
  version INTEGER NOT NULL,
  logical_date INTEGER,
  interval_start INTEGER,
  interval_end INTEGER,
  run_after INTEGER NOT NULL,
  queued_at INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER,
  conf BLOB,
  triggered_by TEXT NOT NULL,
  triggering_user TEXT,
  note TEXT,
  reason TEXT,
  task_count INTEGER NOT NULL,
  rows_created INTEGER NOT NULL,
  revision INTEGER NOT NULL DEFAULT 0,
  journal_seq INTEGER NOT NULL DEFAULT 0,
  feed_seq INTEGER NOT NULL DEFAULT 0,
  epoch INTEGER NOT NULL DEFAULT 0,
  lease_until INTEGER,
  clear_number INTEGER NOT NULL DEFAULT 0,
  backfill INTEGER,
  partition_key TEXT,
  UNIQUE (dag_id, run_id)
);
CREATE UNIQUE INDEX dag_run_logical_date ON dag_run (dag_id, logical_date) WHERE logical_date IS NOT NULL;
-- states 0 (queued) and 1 (running): what a scheduler loads; history does not weigh on it
CREATE INDEX dag_run_active ON dag_run (dag_id, run_after) WHERE state < 2;
CREATE INDEX dag_run_ended ON dag_run (ended_at) WHERE state >= 2;
CREATE INDEX dag_run_after ON dag_run (dag_id, run_after);
-- failures are few: lists of them and the counts by state must not walk through all that went well
CREATE INDEX dag_run_failed ON dag_run (dag_id, run_after) WHERE state = 3;

CREATE TABLE task_instance (
  run INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  task_id TEXT NOT NULL,
  map_index INTEGER NOT NULL DEFAULT -1,
  state INTEGER NOT NULL DEFAULT 0,
  fence INTEGER NOT NULL DEFAULT 0,
  try_number INTEGER NOT NULL DEFAULT 0,
  max_tries INTEGER NOT NULL DEFAULT 0,
  resume INTEGER NOT NULL DEFAULT 0,
  requeues INTEGER NOT NULL DEFAULT 0,
  due_at INTEGER,
  queued_at INTEGER,
  started_at INTEGER,
  ended_at INTEGER,
  reason TEXT,
  branch BLOB,
  note TEXT,
  PRIMARY KEY (run, slot)
) WITHOUT ROWID;
-- failed and upstream_failed; written only when a task instance fails
CREATE INDEX task_instance_failed ON task_instance (run) WHERE state IN (5, 7);

CREATE TABLE attempt (
  run INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  try_number INTEGER NOT NULL,
  executor TEXT NOT NULL,
  host TEXT,
  hostname TEXT,
  pid INTEGER,
  nonce TEXT,
  lease_until INTEGER,
  queued_at INTEGER,
  started_at INTEGER,
  ended_at INTEGER,
  outcome TEXT,
  reason TEXT,
  exit_code INTEGER,
  signal INTEGER,
  PRIMARY KEY (run, slot, fence)
) WITHOUT ROWID;

-- every step of every task instance; state = fold(journal)
CREATE TABLE journal (
  run INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  before INTEGER NOT NULL,
  after INTEGER NOT NULL,
  at INTEGER NOT NULL,
  cause TEXT NOT NULL,
  PRIMARY KEY (run, seq)
) WITHOUT ROWID;

-- commands to a run, numbered under its row; consumed by cursor (dag_run.feed_seq)
CREATE TABLE feed (
  run INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  payload BLOB NOT NULL,
  actor TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (run, seq)
) WITHOUT ROWID;

-- answers given to commands, so that a repeated command gets the same one
CREATE TABLE op (
  op TEXT PRIMARY KEY,
  answer BLOB NOT NULL,
  at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX op_at ON op (at);

-- what has to be done outside after a commit, until it is acknowledged
CREATE TABLE outbox (
  -- never given twice: an item may be acknowledged twice
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  identity TEXT NOT NULL UNIQUE,
  payload BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  tries INTEGER NOT NULL DEFAULT 0,
  parked TEXT
);
CREATE INDEX outbox_due ON outbox (due_at);

CREATE TABLE xcom (
  run INTEGER NOT NULL,
  task_id TEXT NOT NULL,
  map_index INTEGER NOT NULL DEFAULT -1,
  key TEXT NOT NULL,
  value BLOB,
  spill TEXT,
  size INTEGER NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (run, task_id, map_index, key)
) WITHOUT ROWID;

-- spill files are named by content and shared: retention asks who else refers to one
CREATE INDEX xcom_spill ON xcom (spill) WHERE spill IS NOT NULL;

CREATE TABLE pool (
  name TEXT PRIMARY KEY,
  slots INTEGER NOT NULL,
  description TEXT,
  include_deferred INTEGER NOT NULL DEFAULT 0,
  team TEXT
) WITHOUT ROWID;

CREATE TABLE variable (
  key TEXT PRIMARY KEY,
  value BLOB NOT NULL,
  description TEXT,
  is_encrypted INTEGER NOT NULL,
  team TEXT
) WITHOUT ROWID;

CREATE TABLE connection (
  conn_id TEXT PRIMARY KEY,
  conn_type TEXT NOT NULL,
  description TEXT,
  host TEXT,
  login TEXT,
  port INTEGER,
  schema_name TEXT,
  password BLOB,
  extra BLOB,
  team TEXT
) WITHOUT ROWID;

CREATE TABLE import_error (
  id INTEGER PRIMARY KEY,
  bundle TEXT NOT NULL,
  file TEXT NOT NULL,
  message TEXT NOT NULL,
  stack_trace TEXT NOT NULL,
  line INTEGER,
  at INTEGER NOT NULL,
  UNIQUE (bundle, file)
);

CREATE TABLE scheduler (
  epoch INTEGER PRIMARY KEY,
  hostname TEXT NOT NULL,
  pid INTEGER NOT NULL,
  boot TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  lease_until INTEGER
);

CREATE TABLE worker_host (
  name TEXT PRIMARY KEY,
  hostname TEXT NOT NULL,
  pid INTEGER NOT NULL,
  slots INTEGER NOT NULL,
  seen_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE backfill (
  id INTEGER PRIMARY KEY,
  dag_id TEXT NOT NULL,
  from_date INTEGER NOT NULL,
  to_date INTEGER NOT NULL,
  conf BLOB,
  is_paused INTEGER NOT NULL DEFAULT 0,
  max_active_runs INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  completed_at INTEGER
);

CREATE TABLE asset (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  uri TEXT NOT NULL UNIQUE,
  asset_group TEXT NOT NULL DEFAULT 'asset',
  extra BLOB
);

CREATE TABLE asset_event (
  id INTEGER PRIMARY KEY,
  asset INTEGER NOT NULL,
  run INTEGER,
  slot INTEGER,
  extra BLOB,
  partition_key TEXT,
  at INTEGER NOT NULL
);
CREATE INDEX asset_event_asset ON asset_event (asset, id);

CREATE TABLE trigger (
  id INTEGER PRIMARY KEY,
  run INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  classpath TEXT NOT NULL,
  kwargs BLOB NOT NULL,
  method TEXT NOT NULL,
  timeout_at INTEGER,
  owner TEXT,
  created_at INTEGER NOT NULL
);

CREATE TABLE skipped_interval (
  dag_id TEXT NOT NULL,
  schedule_epoch INTEGER NOT NULL,
  from_date INTEGER NOT NULL,
  to_date INTEGER NOT NULL,
  reason TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (dag_id, schedule_epoch, from_date)
) WITHOUT ROWID;

CREATE TABLE audit (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  event TEXT NOT NULL,
  actor TEXT NOT NULL,
  dag_id TEXT,
  run_id TEXT,
  task_id TEXT,
  detail BLOB
);
CREATE INDEX audit_dag ON audit (dag_id, id);

INSERT INTO pool (name, slots, description) VALUES ('default_pool', 128, 'Default pool');
