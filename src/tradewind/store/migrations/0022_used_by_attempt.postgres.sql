-- what each attempt has used: CPU in microseconds, and the greatest resident memory of one of its processes in bytes
ALTER TABLE attempt ADD COLUMN cpu BIGINT;
ALTER TABLE attempt ADD COLUMN peak_memory BIGINT;
