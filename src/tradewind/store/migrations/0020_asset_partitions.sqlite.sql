-- asset partitions: the date of a run's partition, and which partition key of a DAG an event waits for ('': the DAG has no partitions)
ALTER TABLE dag_run ADD COLUMN partition_date INTEGER;
CREATE INDEX dag_run_partition ON dag_run (dag_id, partition_key) WHERE partition_key IS NOT NULL;
ALTER TABLE asset_event ADD COLUMN partition_date INTEGER;
CREATE TABLE asset_delivery_with_target (
  dag_id TEXT NOT NULL,
  event INTEGER NOT NULL,
  outcome INTEGER NOT NULL DEFAULT 0,
  counts INTEGER NOT NULL DEFAULT 1,
  run INTEGER,
  reason TEXT,
  target TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (dag_id, event, target)
) WITHOUT ROWID;
INSERT INTO asset_delivery_with_target (dag_id, event, outcome, counts, run, reason)
  SELECT dag_id, event, outcome, counts, run, reason FROM asset_delivery;
DROP TABLE asset_delivery;
ALTER TABLE asset_delivery_with_target RENAME TO asset_delivery;
CREATE INDEX asset_delivery_waiting ON asset_delivery (dag_id, event) WHERE outcome = 0;
CREATE INDEX asset_delivery_run ON asset_delivery (run) WHERE run IS NOT NULL;
CREATE INDEX asset_delivery_event ON asset_delivery (event);
-- every DAG file is read once more: the partitions of its schedule are kept from now on
UPDATE dag SET file_hash = '';
