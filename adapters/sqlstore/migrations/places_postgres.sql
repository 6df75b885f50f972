-- Which rows may name which directory, so that looking for another task's claim
-- costs the same however many tasks there are. Kept by triggers, because rows
-- may be written by other programs. bucket is the directory's last name in
-- lower case, or ? for everything SQL cannot compare; path is the directory in
-- lower case. It is a superset: core reads the rows themselves.
CREATE TABLE reclaim_places (source TEXT NOT NULL, row_id TEXT NOT NULL, bucket TEXT COLLATE "C" NOT NULL, path TEXT COLLATE "C" NOT NULL);
CREATE INDEX ix_places_row ON reclaim_places(row_id, source);
CREATE INDEX ix_places_bucket ON reclaim_places(bucket, source, row_id);
CREATE INDEX ix_places_path ON reclaim_places(path, source, row_id);

CREATE FUNCTION reclaim_place(source TEXT, row_id TEXT, dir TEXT, odd BOOLEAN) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  odd := odd OR dir !~ '^/' OR dir ~ '[^ -~]' OR dir ~ '//' OR dir ~ '/$' OR dir ~ '/\.\.?(/|$)';
  INSERT INTO reclaim_places VALUES (source, row_id, CASE WHEN odd THEN '?' ELSE lower(regexp_replace(dir, '^.*/', '')) END, CASE WHEN odd THEN '' ELSE lower(dir) END);
END $$;

CREATE FUNCTION reclaim_launch_places() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  dir TEXT := '';
  odd BOOLEAN := false;
BEGIN
  IF TG_OP <> 'INSERT' THEN
    DELETE FROM reclaim_places p WHERE p.source = 'launch' AND p.row_id = OLD.id;
  END IF;
  IF TG_OP = 'DELETE' THEN
    RETURN OLD;
  END IF;
  IF btrim(COALESCE(NEW.metadata, ''), E' \t\n\r') IN ('', 'null') THEN
    RETURN NEW;
  END IF;
  BEGIN
    SELECT COALESCE(bool_or(key ~ '[^ -~]' OR lower(key) <> key AND (lower(key) LIKE 'ssh\_%' OR lower(key) IN ('cleanup_script', 'executor_profile_id'))
        OR json_typeof(value) NOT IN ('string', 'null') AND (key LIKE 'ssh\_%' AND key <> 'ssh_port' OR key IN ('cleanup_script', 'executor_profile_id'))), false)
      OR count(*) <> count(DISTINCT key), COALESCE(max(value #>> '{}') FILTER (WHERE key = 'ssh_remote_task_dir'), '')
      INTO odd, dir FROM json_each(NEW.metadata::json);
  EXCEPTION WHEN OTHERS THEN
    odd := true;
    dir := '';
  END;
  IF odd OR dir <> '' THEN
    PERFORM reclaim_place('launch', NEW.id, dir, odd);
  END IF;
  RETURN NEW;
END $$;

CREATE FUNCTION reclaim_job_places() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  doc JSON;
  odd BOOLEAN := false;
  dirs TEXT[];
  dir TEXT;
BEGIN
  IF TG_OP <> 'INSERT' THEN
    DELETE FROM reclaim_places p WHERE p.source = 'job' AND p.row_id = OLD.id;
  END IF;
  IF TG_OP = 'DELETE' THEN
    RETURN OLD;
  END IF;
  BEGIN
    doc := NEW.resource_snapshot::json;
    IF json_typeof(doc) = 'null' THEN
      RETURN NEW;
    END IF;
    SELECT COALESCE(bool_or(key ~ '[^ -~]' OR lower(key) <> key AND lower(key) IN ('ssh_task_dirs', 'task_environment')
        OR key = 'ssh_task_dirs' AND json_typeof(value) NOT IN ('array', 'null') OR key = 'task_environment' AND json_typeof(value) NOT IN ('object', 'null')), false)
      OR count(*) <> count(DISTINCT key) INTO odd FROM json_each(doc);
    IF NOT odd AND json_typeof(doc -> 'task_environment') = 'object' THEN
      SELECT COALESCE(bool_or(key ~ '[^ -~]' OR lower(key) <> key OR key IN ('id', 'task_id', 'executor_profile_id') AND json_typeof(value) NOT IN ('string', 'null')), false)
        OR count(*) <> count(DISTINCT key) INTO odd FROM json_each(doc -> 'task_environment');
    END IF;
    IF NOT odd AND json_typeof(doc -> 'ssh_task_dirs') = 'array' THEN
      SELECT array_agg(d.value #>> '{}') INTO dirs
        FROM json_array_elements(doc -> 'ssh_task_dirs') e, json_each(CASE json_typeof(e.value) WHEN 'object' THEN e.value ELSE '{}'::json END) d
        WHERE d.key = 'task_dir' AND json_typeof(d.value) = 'string';
    END IF;
  EXCEPTION WHEN OTHERS THEN
    odd := true;
  END;
  IF odd THEN
    PERFORM reclaim_place('job', NEW.id, '', true);
    RETURN NEW;
  END IF;
  FOREACH dir IN ARRAY COALESCE(dirs, '{}') LOOP
    IF dir <> '' THEN
      PERFORM reclaim_place('job', NEW.id, dir, false);
    END IF;
  END LOOP;
  RETURN NEW;
END $$;

CREATE TRIGGER reclaim_launch_places AFTER INSERT OR DELETE OR UPDATE OF id, metadata ON executors_running FOR EACH ROW EXECUTE FUNCTION reclaim_launch_places();
CREATE TRIGGER reclaim_job_places AFTER INSERT OR DELETE OR UPDATE OF id, resource_snapshot ON task_resource_cleanup_jobs FOR EACH ROW EXECUTE FUNCTION reclaim_job_places();
