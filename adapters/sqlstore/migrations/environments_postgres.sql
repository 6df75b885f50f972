-- Where the environments of open tasks lead is looked up like where launches and
-- jobs do. Every row is read again: what makes two directories equal has changed.
CREATE TRIGGER reclaim_environment_placed AFTER INSERT OR DELETE OR UPDATE OF id, workspace_path ON task_environments
  FOR EACH ROW EXECUTE FUNCTION reclaim_place('environment');
DELETE FROM reclaim_places;
INSERT INTO reclaim_places (source, row_id) SELECT 'launch', id FROM executors_running;
INSERT INTO reclaim_places (source, row_id) SELECT 'job', id FROM task_resource_cleanup_jobs;
INSERT INTO reclaim_places (source, row_id) SELECT 'environment', id FROM task_environments;
