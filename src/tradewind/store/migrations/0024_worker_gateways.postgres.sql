-- The gateways at which a worker on another machine may believe to be registered. A row is written before the registration is answered.
CREATE TABLE worker_gateway (
  worker TEXT COLLATE "C" NOT NULL,
  gateway TEXT COLLATE "C" NOT NULL,
  at BIGINT NOT NULL,
  PRIMARY KEY (worker, gateway)
);
