-- Who has a job in flight on which host, over all machines, and who waits for
-- one to end. A slot counts until it is given back, or its machine was silent
-- for too long; it outlives a restart of the database.
CREATE TABLE IF NOT EXISTS {schema}.reclaim_slots (
  host TEXT NOT NULL, job_id TEXT NOT NULL, attempt INTEGER NOT NULL, worker TEXT NOT NULL,
  beat TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (host, job_id, attempt));
CREATE TABLE IF NOT EXISTS {schema}.reclaim_waiting (
  host TEXT NOT NULL, job_id TEXT NOT NULL, since TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (host, job_id));
CREATE INDEX IF NOT EXISTS reclaim_waiting_since ON {schema}.reclaim_waiting (host, since);
