-- asset watchers: what each trigger does now, and the token of each event, so that an event that comes twice counts once
CREATE TABLE asset_watcher (
  id BIGINT PRIMARY KEY,
  classpath TEXT COLLATE "C" NOT NULL,
  worker TEXT COLLATE "C",
  failures INTEGER NOT NULL,
  error TEXT COLLATE "C",
  next_start BIGINT,
  since BIGINT NOT NULL
);
ALTER TABLE asset_event ADD COLUMN origin TEXT COLLATE "C";
CREATE UNIQUE INDEX asset_event_origin ON asset_event (origin, asset) WHERE origin IS NOT NULL;
-- every DAG file is read once more: the watchers of its assets are kept from now on
UPDATE dag SET file_hash = '';
