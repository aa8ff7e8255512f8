-- The gateways at which a worker on another machine may believe to be registered. A row is written before the registration is answered.
CREATE TABLE worker_gateway (
  worker TEXT NOT NULL,
  gateway TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (worker, gateway)
) WITHOUT ROWID;
