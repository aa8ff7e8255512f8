-- the address of the gateway beside the scheduler that holds the lease; empty: other machines cannot reach it
ALTER TABLE scheduler_lease ADD COLUMN address TEXT COLLATE "C" NOT NULL DEFAULT '';
