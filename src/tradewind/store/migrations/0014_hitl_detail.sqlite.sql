-- Questions of tasks to persons, and their answers (human in the loop): one for each try of a task instance.

CREATE TABLE hitl_detail (
  run INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  try_number INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  subject TEXT NOT NULL,
  body TEXT,
  options TEXT NOT NULL,
  defaults TEXT,
  multiple INTEGER NOT NULL,
  params TEXT NOT NULL,
  assigned_users TEXT NOT NULL,
  responded_at INTEGER,
  responded_by_id TEXT,
  responded_by_name TEXT,
  chosen_options TEXT,
  params_input TEXT,
  PRIMARY KEY (run, slot, try_number)
) WITHOUT ROWID;

CREATE INDEX hitl_detail_open ON hitl_detail (created_at) WHERE responded_at IS NULL;
