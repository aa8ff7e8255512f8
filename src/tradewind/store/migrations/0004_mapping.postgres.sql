-- dynamic task mapping: what a success offers to mapped tasks, and what people are shown in place of a map index
ALTER TABLE task_instance ADD COLUMN map_length INTEGER;
ALTER TABLE task_instance ADD COLUMN map_label TEXT COLLATE "C";
