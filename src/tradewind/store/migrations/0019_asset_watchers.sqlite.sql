-- asset watchers: what each trigger does now, and the token of each event, so that an event that comes twice counts once
CREATE TABLE asset_watcher (
  id INTEGER PRIMARY KEY,
  classpath TEXT NOT NULL,
  worker TEXT,
  failures INTEGER NOT NULL,
  error TEXT,
  next_start INTEGER,
  since INTEGER NOT NULL
);
ALTER TABLE asset_event ADD COLUMN origin TEXT;
CREATE UNIQUE INDEX asset_event_origin ON asset_event (origin, asset) WHERE origin IS NOT NULL;
-- every DAG file is read once more: the watchers of its assets are kept from now on
UPDATE dag SET file_hash = '';
