-- Values that tasks keep between their tries (task state store), and values that belong to an asset (asset state store).

CREATE TABLE task_state_store (
  run INTEGER NOT NULL,
  task_id TEXT NOT NULL,
  map_index INTEGER NOT NULL DEFAULT -1,
  key TEXT NOT NULL,
  value BLOB NOT NULL,
  at INTEGER NOT NULL,
  expires_at INTEGER,
  PRIMARY KEY (run, task_id, map_index, key)
) WITHOUT ROWID;

CREATE INDEX task_state_store_expires ON task_state_store (expires_at) WHERE expires_at IS NOT NULL;

-- writer: task, or api; the source is the task instance that wrote the value
CREATE TABLE asset_state_store (
  asset INTEGER NOT NULL,
  key TEXT NOT NULL,
  value BLOB NOT NULL,
  at INTEGER NOT NULL,
  writer TEXT NOT NULL,
  source_dag TEXT,
  source_run TEXT,
  source_task TEXT,
  source_index INTEGER,
  PRIMARY KEY (asset, key)
) WITHOUT ROWID;
