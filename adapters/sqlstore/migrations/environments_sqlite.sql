-- Where the environments of open tasks lead is looked up like where launches and
-- jobs do. Every row is read again: what makes two directories equal has changed.
CREATE TRIGGER reclaim_environment_put AFTER INSERT ON task_environments BEGIN
  INSERT INTO reclaim_places (source, row_id) VALUES ('environment', NEW.id);
END;
CREATE TRIGGER reclaim_environment_changed AFTER UPDATE OF id, workspace_path ON task_environments BEGIN
  DELETE FROM reclaim_places WHERE source = 'environment' AND row_id IN (OLD.id, NEW.id);
  INSERT INTO reclaim_places (source, row_id) VALUES ('environment', NEW.id);
END;
CREATE TRIGGER reclaim_environment_gone AFTER DELETE ON task_environments BEGIN
  DELETE FROM reclaim_places WHERE source = 'environment' AND row_id = OLD.id;
END;
DELETE FROM reclaim_places;
INSERT INTO reclaim_places (source, row_id) SELECT 'launch', id FROM executors_running;
INSERT INTO reclaim_places (source, row_id) SELECT 'job', id FROM task_resource_cleanup_jobs;
INSERT INTO reclaim_places (source, row_id) SELECT 'environment', id FROM task_environments;
