-- What deferred task instances wait for (`deferral`), and, when that has come, what their next attempt is told (`resumption`).
-- Both are MessagePack. The table of triggers of the first release was never used.

DROP TABLE trigger;

CREATE TABLE deferral (
  run INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  since INTEGER NOT NULL,
  deferral BLOB NOT NULL,
  resumption BLOB,
  PRIMARY KEY (run, slot)
) WITHOUT ROWID;
