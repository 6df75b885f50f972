-- Which rows may name which directory, so that looking for another task's claim
-- costs the same however many tasks there are. The triggers only note that a row
-- is there, also when another program wrote it (bucket ?); places.go reads it
-- and fills in where it leads. A job's directories are frozen once it is
-- activated, so later changes of its snapshot are not followed.
CREATE TABLE reclaim_places (seq INTEGER PRIMARY KEY AUTOINCREMENT, source TEXT NOT NULL, row_id TEXT NOT NULL, bucket TEXT NOT NULL DEFAULT '?', path TEXT NOT NULL DEFAULT '');
CREATE INDEX ix_places_row ON reclaim_places(row_id, source);
CREATE INDEX ix_places_bucket ON reclaim_places(bucket, source, row_id);
CREATE INDEX ix_places_path ON reclaim_places(path, source, row_id);

CREATE TRIGGER reclaim_launch_put AFTER INSERT ON executors_running BEGIN
  INSERT INTO reclaim_places (source, row_id) VALUES ('launch', NEW.id);
END;
CREATE TRIGGER reclaim_launch_changed AFTER UPDATE OF id, metadata ON executors_running BEGIN
  DELETE FROM reclaim_places WHERE source = 'launch' AND row_id IN (OLD.id, NEW.id);
  INSERT INTO reclaim_places (source, row_id) VALUES ('launch', NEW.id);
END;
CREATE TRIGGER reclaim_launch_gone AFTER DELETE ON executors_running BEGIN
  DELETE FROM reclaim_places WHERE source = 'launch' AND row_id = OLD.id;
END;
CREATE TRIGGER reclaim_job_put AFTER INSERT ON task_resource_cleanup_jobs BEGIN
  INSERT INTO reclaim_places (source, row_id) VALUES ('job', NEW.id);
END;
CREATE TRIGGER reclaim_job_changed AFTER UPDATE OF id, resource_snapshot ON task_resource_cleanup_jobs WHEN OLD.state = 'prepared' OR OLD.id <> NEW.id BEGIN
  DELETE FROM reclaim_places WHERE source = 'job' AND row_id IN (OLD.id, NEW.id);
  INSERT INTO reclaim_places (source, row_id) VALUES ('job', NEW.id);
END;
CREATE TRIGGER reclaim_job_gone AFTER DELETE ON task_resource_cleanup_jobs BEGIN
  DELETE FROM reclaim_places WHERE source = 'job' AND row_id = OLD.id;
END;
