-- the pool that a person chose for a task instance when they ran it; NULL: the pool that its DAG names
ALTER TABLE task_instance ADD COLUMN pool TEXT COLLATE "C";
