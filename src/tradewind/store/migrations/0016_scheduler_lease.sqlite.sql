-- which scheduler may write, for databases that several schedulers can reach; one row. A SQLite file is guarded by a lock instead
CREATE TABLE scheduler_lease (
  id INTEGER PRIMARY KEY,
  epoch INTEGER NOT NULL,
  -- a random text of the scheduler that holds the lease; empty: nobody holds it
  holder TEXT NOT NULL,
  hostname TEXT NOT NULL,
  pid INTEGER NOT NULL,
  -- until this moment of the database's clock, unless it is renewed
  lease_until INTEGER NOT NULL
);
