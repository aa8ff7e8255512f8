-- Values that tasks keep between their tries (task state store), and values that belong to an asset (asset state store).

CREATE TABLE task_state_store (
  run BIGINT NOT NULL,
  task_id TEXT COLLATE "C" NOT NULL,
  map_index INTEGER NOT NULL DEFAULT -1,
  key TEXT COLLATE "C" NOT NULL,
  value BYTEA NOT NULL,
  at BIGINT NOT NULL,
  expires_at BIGINT,
  PRIMARY KEY (run, task_id, map_index, key)
);

CREATE INDEX task_state_store_expires ON task_state_store (expires_at) WHERE expires_at IS NOT NULL;

-- writer: task, or api; the source is the task instance that wrote the value
CREATE TABLE asset_state_store (
  asset BIGINT NOT NULL,
  key TEXT COLLATE "C" NOT NULL,
  value BYTEA NOT NULL,
  at BIGINT NOT NULL,
  writer TEXT COLLATE "C" NOT NULL,
  source_dag TEXT COLLATE "C",
  source_run TEXT COLLATE "C",
  source_task TEXT COLLATE "C",
  source_index INTEGER,
  PRIMARY KEY (asset, key)
);
