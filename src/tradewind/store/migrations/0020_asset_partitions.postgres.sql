-- asset partitions: the date of a run's partition, and which partition key of a DAG an event waits for ('': the DAG has no partitions)
ALTER TABLE dag_run ADD COLUMN partition_date BIGINT;
CREATE INDEX dag_run_partition ON dag_run (dag_id, partition_key) WHERE partition_key IS NOT NULL;
ALTER TABLE asset_event ADD COLUMN partition_date BIGINT;
ALTER TABLE asset_delivery ADD COLUMN target TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE asset_delivery DROP CONSTRAINT asset_delivery_pkey;
ALTER TABLE asset_delivery ADD PRIMARY KEY (dag_id, event, target);
-- every DAG file is read once more: the partitions of its schedule are kept from now on
UPDATE dag SET file_hash = '';
