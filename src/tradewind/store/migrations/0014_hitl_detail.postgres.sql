-- Questions of tasks to persons, and their answers (human in the loop): one for each try of a task instance.

CREATE TABLE hitl_detail (
  run BIGINT NOT NULL,
  slot INTEGER NOT NULL,
  try_number INTEGER NOT NULL,
  fence BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  subject TEXT COLLATE "C" NOT NULL,
  body TEXT COLLATE "C",
  options TEXT COLLATE "C" NOT NULL,
  defaults TEXT COLLATE "C",
  multiple INTEGER NOT NULL,
  params TEXT COLLATE "C" NOT NULL,
  assigned_users TEXT COLLATE "C" NOT NULL,
  responded_at BIGINT,
  responded_by_id TEXT COLLATE "C",
  responded_by_name TEXT COLLATE "C",
  chosen_options TEXT COLLATE "C",
  params_input TEXT COLLATE "C",
  PRIMARY KEY (run, slot, try_number)
);

CREATE INDEX hitl_detail_open ON hitl_detail (created_at) WHERE responded_at IS NULL;
