-- Which rows may name which directory, so that looking for another task's claim
-- costs the same however many tasks there are. The triggers only note that a row
-- is there, also when another program wrote it (bucket ?); places.go reads it
-- and fills in where it leads. A job's directories are frozen once it is
-- activated, so later changes of its snapshot are not followed.
CREATE TABLE reclaim_places (seq BIGSERIAL PRIMARY KEY, source TEXT NOT NULL, row_id TEXT NOT NULL, bucket TEXT COLLATE "C" NOT NULL DEFAULT '?', path TEXT COLLATE "C" NOT NULL DEFAULT '');
CREATE INDEX ix_places_row ON reclaim_places(row_id, source);
CREATE INDEX ix_places_bucket ON reclaim_places(bucket, source, row_id);
CREATE INDEX ix_places_path ON reclaim_places(path, source, row_id);

CREATE FUNCTION reclaim_place() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    DELETE FROM reclaim_places WHERE source = TG_ARGV[0] AND row_id = OLD.id;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO reclaim_places (source, row_id) VALUES (TG_ARGV[0], NEW.id);
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER reclaim_launch_placed AFTER INSERT OR DELETE OR UPDATE OF id, metadata ON executors_running
  FOR EACH ROW EXECUTE FUNCTION reclaim_place('launch');
CREATE TRIGGER reclaim_job_placed AFTER INSERT OR DELETE ON task_resource_cleanup_jobs
  FOR EACH ROW EXECUTE FUNCTION reclaim_place('job');
CREATE TRIGGER reclaim_job_changed AFTER UPDATE OF id, resource_snapshot ON task_resource_cleanup_jobs
  FOR EACH ROW WHEN (OLD.state = 'prepared' OR OLD.id <> NEW.id) EXECUTE FUNCTION reclaim_place('job');
