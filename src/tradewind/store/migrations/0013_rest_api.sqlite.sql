-- DAGs that users have marked as their favorites
CREATE TABLE dag_favorite (
  user_name TEXT NOT NULL,
  dag_id TEXT NOT NULL,
  PRIMARY KEY (user_name, dag_id)
) WITHOUT ROWID;
CREATE INDEX dag_favorite_dag ON dag_favorite (dag_id);
