-- Assets: what DAGs name, what was updated, and which DAG has consumed which event. (The first shape was never written to.)
DROP TABLE asset_event;
DROP TABLE asset;
CREATE TABLE asset (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  uri TEXT NOT NULL,
  asset_group TEXT NOT NULL DEFAULT 'asset',
  extra BLOB,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (name, uri)
);
CREATE INDEX asset_uri ON asset (uri);
CREATE TABLE asset_alias (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  alias_group TEXT NOT NULL DEFAULT 'asset'
);
-- which assets ever came under an alias
CREATE TABLE asset_alias_member (
  alias TEXT NOT NULL,
  asset INTEGER NOT NULL,
  PRIMARY KEY (alias, asset)
) WITHOUT ROWID;
CREATE INDEX asset_alias_member_asset ON asset_alias_member (asset);
-- what the current definition of each DAG names; kind: schedule, outlet or inlet. One of name and uri may be empty (a reference)
CREATE TABLE asset_reference (
  dag_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  task_id TEXT NOT NULL,
  name TEXT NOT NULL,
  uri TEXT NOT NULL,
  alias TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (dag_id, kind, task_id, name, uri, alias)
) WITHOUT ROWID;
CREATE INDEX asset_reference_name ON asset_reference (name, kind);
CREATE INDEX asset_reference_uri ON asset_reference (uri, kind);
CREATE INDEX asset_reference_alias ON asset_reference (alias, kind);
-- the id is the place in the sequence of all events; no number comes twice
CREATE TABLE asset_event (
  id INTEGER PRIMARY KEY,
  asset INTEGER NOT NULL,
  extra BLOB,
  at INTEGER NOT NULL,
  source_dag TEXT,
  source_run TEXT,
  source_task TEXT,
  source_index INTEGER NOT NULL DEFAULT -1,
  aliases TEXT NOT NULL DEFAULT '[]',
  partition_key TEXT
);
CREATE INDEX asset_event_asset ON asset_event (asset, id);
CREATE INDEX asset_event_source ON asset_event (source_dag, source_run);
-- what became of an event for each DAG that waits for its asset: outcome 0 waits, 1 consumed by `run`, 2 superseded (`reason`)
CREATE TABLE asset_delivery (
  dag_id TEXT NOT NULL,
  event INTEGER NOT NULL,
  outcome INTEGER NOT NULL DEFAULT 0,
  counts INTEGER NOT NULL DEFAULT 1,
  run INTEGER,
  reason TEXT,
  PRIMARY KEY (dag_id, event)
) WITHOUT ROWID;
CREATE INDEX asset_delivery_waiting ON asset_delivery (dag_id, event) WHERE outcome = 0;
CREATE INDEX asset_delivery_run ON asset_delivery (run) WHERE run IS NOT NULL;
CREATE INDEX asset_delivery_event ON asset_delivery (event);
ALTER TABLE dag ADD COLUMN assets BLOB;
-- every DAG file is read once more: what its tasks produce and read is kept from now on
UPDATE dag SET file_hash = '';
