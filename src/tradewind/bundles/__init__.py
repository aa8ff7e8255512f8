"""Transport of DAG files to other machines: snapshots of a folder at the gateway, and their copies on a worker."""
