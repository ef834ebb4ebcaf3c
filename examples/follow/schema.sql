CREATE TABLE threads (            -- a row for each thread, as it is now
  id text PRIMARY KEY, title text, status text NOT NULL, items bigint NOT NULL, version bigint NOT NULL
);
CREATE TABLE changes (            -- the events that are applied
  event text PRIMARY KEY, seq bigint NOT NULL, thread text NOT NULL, version bigint NOT NULL, type text NOT NULL, at timestamptz NOT NULL
);
CREATE TABLE position (           -- one row: where the consumer began, and how far the tables are
  start bigint NOT NULL, seq bigint NOT NULL, log text NOT NULL
);
