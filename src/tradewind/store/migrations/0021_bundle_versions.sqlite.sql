-- the version of its bundle that a DAG's definition comes from: a run keeps it
ALTER TABLE dag ADD COLUMN bundle_version TEXT;
