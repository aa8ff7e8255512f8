"""An installation of DataX that records how it is started, and a metastore in SQLite that knows the tables of a shop."""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

METASTORE = """
CREATE TABLE DBS (DB_ID INTEGER, NAME TEXT);
CREATE TABLE TBLS (TBL_ID INTEGER, DB_ID INTEGER, SD_ID INTEGER, TBL_NAME TEXT);
CREATE TABLE SDS (SD_ID INTEGER, CD_ID INTEGER, SERDE_ID INTEGER, LOCATION TEXT, INPUT_FORMAT TEXT);
CREATE TABLE COLUMNS_V2 (CD_ID INTEGER, COLUMN_NAME TEXT, TYPE_NAME TEXT, INTEGER_IDX INTEGER);
CREATE TABLE PARTITION_KEYS (TBL_ID INTEGER, PKEY_NAME TEXT, PKEY_TYPE TEXT, INTEGER_IDX INTEGER);
CREATE TABLE SERDE_PARAMS (SERDE_ID INTEGER, PARAM_KEY TEXT, PARAM_VALUE TEXT);
INSERT INTO DBS VALUES (1, 'sales');
INSERT INTO TBLS VALUES (10, 1, 20, 'orders'), (11, 1, 21, 'archive');
INSERT INTO SDS VALUES (20, 30, 40, 'hdfs://nn:8020/warehouse/sales.db/orders', 'org.apache.hadoop.mapred.TextInputFormat'),
    (21, 31, 41, '/warehouse/archive', 'org.apache.hadoop.hive.ql.io.orc.OrcInputFormat');
INSERT INTO COLUMNS_V2 VALUES (30, 'price', 'decimal(10,2)', 2), (30, 'id', 'bigint', 0), (30, 'day', 'date', 1),
    (31, 'id', 'int', 0);
INSERT INTO PARTITION_KEYS VALUES (10, 'ds', 'string', 0);
INSERT INTO SERDE_PARAMS VALUES (40, 'field.delim', ',');
"""

RECORDER = """
import json, os, sys
job = sys.argv[-1]
record = {"arguments": sys.argv[1:-1], "job": json.load(open(job)), "mode": oct(os.stat(job).st_mode)[-3:], "path": job}
json.dump(record, open(os.environ.get("RECORD", os.devnull), "w"))
print("StandAloneJobContainerCommunicator - Total 3 records | Percentage 100.00%", flush=True)
sys.exit(int(os.environ.get("EXIT_CODE", "0")))
"""


def install(folder: Path) -> dict[str, dict[str, Any]]:
    """Write both below a folder. Returns the connections of a transfer: `datax_default`, `metastore_default` and `shop`."""
    database = folder / "metastore.db"
    with sqlite3.connect(database) as connection:
        connection.executescript(METASTORE)
    connection.close()
    home = folder / "datax"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "datax.py").write_text(RECORDER)
    extra = {"home": str(home), "python": sys.executable, "hadoop_config": {"dfs.ha": "yes"}}
    return {
        "metastore_default": {"conn_type": "sqlite", "host": str(database)},
        "datax_default": {"conn_type": "generic", "extra": json.dumps(extra)},
        "shop": {"conn_type": "mysql", "host": "db", "port": 3307, "login": "u", "password": "secret", "schema": "shop"},
    }
