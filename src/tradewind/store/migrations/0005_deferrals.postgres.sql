-- What deferred task instances wait for (`deferral`), and, when that has come, what their next attempt is told (`resumption`).
-- Both are MessagePack. The table of triggers of the first release was never used.

DROP TABLE trigger;

CREATE TABLE deferral (
  run BIGINT NOT NULL,
  slot INTEGER NOT NULL,
  fence BIGINT NOT NULL,
  since BIGINT NOT NULL,
  deferral BYTEA NOT NULL,
  resumption BYTEA,
  PRIMARY KEY (run, slot)
);
