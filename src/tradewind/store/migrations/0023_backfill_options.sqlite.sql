-- Whether repeated runs of a backfill move to the newest version of their bundle (NULL: as the DAG says), and backfills of DAGs with
-- partitions: the key of each planned run, and the way from a partition date to its runs.
ALTER TABLE backfill ADD COLUMN run_on_latest_version INTEGER;
ALTER TABLE backfill_run ADD COLUMN partition_key TEXT;
CREATE INDEX dag_run_partition_date ON dag_run (dag_id, partition_date) WHERE partition_date IS NOT NULL;
-- every DAG file is read once more: allowed types of runs and the methods of its timetable are kept from now on
UPDATE dag SET file_hash = '';
