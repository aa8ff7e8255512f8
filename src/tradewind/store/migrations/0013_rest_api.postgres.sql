-- DAGs that users have marked as their favorites
CREATE TABLE dag_favorite (
  user_name TEXT COLLATE "C" NOT NULL,
  dag_id TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (user_name, dag_id)
);
CREATE INDEX dag_favorite_dag ON dag_favorite (dag_id);
