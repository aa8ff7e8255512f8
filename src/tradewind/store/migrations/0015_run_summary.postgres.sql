-- the states of the task instances of a run at its end, in a few bytes (kernel/run_summary.py); valid while the journal of the run has
-- not grown since. Runs that ended before have none: their rows are read
CREATE TABLE run_summary (
  run BIGINT PRIMARY KEY,
  journal_seq BIGINT NOT NULL,
  summary BYTEA NOT NULL
);
