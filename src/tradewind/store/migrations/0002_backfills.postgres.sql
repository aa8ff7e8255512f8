-- Backfills: what each was asked for, and what became of each run that it plans.

ALTER TABLE backfill ADD COLUMN schedule BYTEA NOT NULL DEFAULT '';
ALTER TABLE backfill ADD COLUMN reprocess_behavior TEXT COLLATE "C" NOT NULL DEFAULT 'none';
ALTER TABLE backfill ADD COLUMN run_backwards INTEGER NOT NULL DEFAULT 0;
ALTER TABLE backfill ADD COLUMN created_by TEXT COLLATE "C" NOT NULL DEFAULT '';
-- how many runs it plans, and how many of them have had their turn
ALTER TABLE backfill ADD COLUMN planned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE backfill ADD COLUMN handled INTEGER NOT NULL DEFAULT 0;
CREATE INDEX backfill_active ON backfill (dag_id) WHERE completed_at IS NULL;

-- one row for each planned run that has had its turn
CREATE TABLE backfill_run (
  backfill BIGINT NOT NULL,
  ordinal INTEGER NOT NULL,
  logical_date BIGINT NOT NULL,
  run_id TEXT COLLATE "C",
  outcome TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (backfill, ordinal)
);
