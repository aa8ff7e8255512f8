-- What a partition mapper of users said about the key for which an event waits (JSON). An event with an empty target that waits for a DAG
-- with partitions is not mapped yet.
ALTER TABLE asset_delivery ADD COLUMN facts BYTEA;
-- every DAG file is read once more: mappers of users are kept from now on
UPDATE dag SET file_hash = '';
