-- What the templated fields of an attempt came to: a JSON object, NULL when it has none.

ALTER TABLE attempt ADD COLUMN rendered BYTEA;
