-- posts belong to runs and go with them; what their last try came to; parked ones do not weigh on those that wait
ALTER TABLE outbox ADD COLUMN run BIGINT;
ALTER TABLE outbox ADD COLUMN slot INTEGER NOT NULL DEFAULT -1;
ALTER TABLE outbox ADD COLUMN problem TEXT COLLATE "C";
DROP INDEX outbox_due;
CREATE INDEX outbox_waiting ON outbox (due_at) WHERE parked IS NULL;
CREATE INDEX outbox_parked ON outbox (id) WHERE parked IS NOT NULL;
CREATE INDEX outbox_run ON outbox (run) WHERE run IS NOT NULL;
