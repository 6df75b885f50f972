-- Which rows may name which directory, so that looking for another task's claim
-- costs the same however many tasks there are. Kept by triggers, because rows
-- may be written by other programs. bucket is the directory's last name in
-- lower case, or ? for everything SQL cannot compare; path is the directory in
-- lower case. It is a superset: core reads the rows themselves.
CREATE TABLE reclaim_places (source TEXT NOT NULL, row_id TEXT NOT NULL, bucket TEXT NOT NULL, path TEXT NOT NULL);
CREATE INDEX ix_places_row ON reclaim_places(row_id, source);
CREATE INDEX ix_places_bucket ON reclaim_places(bucket, source, row_id);
CREATE INDEX ix_places_path ON reclaim_places(path, source, row_id);

CREATE VIEW reclaim_launch_places AS
SELECT row_id, CASE WHEN odd THEN '?' ELSE lower(substr(dir, length(rtrim(dir, replace(dir, '/', ''))) + 1)) END AS bucket, CASE WHEN odd THEN '' ELSE lower(dir) END AS path
FROM (
  SELECT row_id, dir, unreadable OR substr(dir, 1, 1) <> '/' OR dir GLOB '*[^ -~]*' OR instr(dir, '//') > 0 OR substr(dir, -1) = '/' OR instr(dir || '/', '/./') > 0 OR instr(dir || '/', '/../') > 0 AS odd
  FROM (
    SELECT row_id, COALESCE(json_extract(doc, '$.ssh_remote_task_dir'), '') AS dir,
      NOT valid
      OR EXISTS (SELECT 1 FROM json_each(doc) WHERE key GLOB '*[^ -~]*' OR lower(key) <> key AND (lower(key) LIKE 'ssh\_%' ESCAPE '\' OR lower(key) IN ('cleanup_script', 'executor_profile_id'))
        OR type NOT IN ('text', 'null') AND (key LIKE 'ssh\_%' ESCAPE '\' AND key <> 'ssh_port' OR key IN ('cleanup_script', 'executor_profile_id')))
      OR (SELECT count(*) <> count(DISTINCT key) FROM json_each(doc)) AS unreadable
    FROM (
      SELECT row_id, valid, CASE WHEN valid AND NOT blank THEN metadata ELSE '{}' END AS doc
      FROM (
        SELECT id AS row_id, metadata, blank, CASE WHEN blank THEN 1 WHEN json_valid(metadata) THEN json_type(metadata) = 'object' ELSE 0 END AS valid
        FROM (SELECT id, metadata, trim(COALESCE(metadata, ''), ' ' || char(9) || char(10) || char(13)) IN ('', 'null') AS blank FROM executors_running)
      )
    )
  )
  WHERE unreadable OR dir <> ''
);

CREATE VIEW reclaim_job_places AS
SELECT row_id, CASE WHEN odd THEN '?' ELSE lower(substr(dir, length(rtrim(dir, replace(dir, '/', ''))) + 1)) END AS bucket, CASE WHEN odd THEN '' ELSE lower(dir) END AS path
FROM (
  SELECT row_id, dir, substr(dir, 1, 1) <> '/' OR dir GLOB '*[^ -~]*' OR instr(dir, '//') > 0 OR substr(dir, -1) = '/' OR instr(dir || '/', '/./') > 0 OR instr(dir || '/', '/../') > 0 AS odd
  FROM (
    SELECT row_id, '?' AS dir FROM (SELECT id AS row_id, resource_snapshot AS raw FROM task_resource_cleanup_jobs)
    WHERE CASE WHEN NOT json_valid(raw) THEN 1 WHEN json_type(raw) = 'null' THEN 0 WHEN json_type(raw) <> 'object' THEN 1 ELSE
      EXISTS (SELECT 1 FROM json_each(raw) WHERE key GLOB '*[^ -~]*' OR lower(key) <> key AND lower(key) IN ('ssh_task_dirs', 'task_environment')
        OR key = 'ssh_task_dirs' AND type NOT IN ('array', 'null') OR key = 'task_environment' AND type NOT IN ('object', 'null'))
      OR (SELECT count(*) <> count(DISTINCT key) FROM json_each(raw))
      OR json_type(raw, '$.task_environment') = 'object' AND (
        EXISTS (SELECT 1 FROM json_each(raw, '$.task_environment') WHERE key GLOB '*[^ -~]*' OR lower(key) <> key OR key IN ('id', 'task_id', 'executor_profile_id') AND type NOT IN ('text', 'null'))
        OR (SELECT count(*) <> count(DISTINCT key) FROM json_each(raw, '$.task_environment'))) END
    UNION ALL
    SELECT j.id, json_extract(e.value, '$.task_dir')
    FROM task_resource_cleanup_jobs j, json_each(CASE WHEN json_valid(j.resource_snapshot) THEN j.resource_snapshot ELSE '{}' END, '$.ssh_task_dirs') e
    WHERE e.type = 'object' AND json_type(e.value, '$.task_dir') = 'text' AND json_extract(e.value, '$.task_dir') <> ''
  )
);

CREATE TRIGGER reclaim_launch_put AFTER INSERT ON executors_running BEGIN
  INSERT INTO reclaim_places SELECT 'launch', row_id, bucket, path FROM reclaim_launch_places WHERE row_id = NEW.id;
END;
CREATE TRIGGER reclaim_launch_changed AFTER UPDATE OF id, metadata ON executors_running BEGIN
  DELETE FROM reclaim_places WHERE source = 'launch' AND row_id IN (OLD.id, NEW.id);
  INSERT INTO reclaim_places SELECT 'launch', row_id, bucket, path FROM reclaim_launch_places WHERE row_id = NEW.id;
END;
CREATE TRIGGER reclaim_launch_gone AFTER DELETE ON executors_running BEGIN
  DELETE FROM reclaim_places WHERE source = 'launch' AND row_id = OLD.id;
END;
CREATE TRIGGER reclaim_job_put AFTER INSERT ON task_resource_cleanup_jobs BEGIN
  INSERT INTO reclaim_places SELECT 'job', row_id, bucket, path FROM reclaim_job_places WHERE row_id = NEW.id;
END;
CREATE TRIGGER reclaim_job_changed AFTER UPDATE OF id, resource_snapshot ON task_resource_cleanup_jobs BEGIN
  DELETE FROM reclaim_places WHERE source = 'job' AND row_id IN (OLD.id, NEW.id);
  INSERT INTO reclaim_places SELECT 'job', row_id, bucket, path FROM reclaim_job_places WHERE row_id = NEW.id;
END;
CREATE TRIGGER reclaim_job_gone AFTER DELETE ON task_resource_cleanup_jobs BEGIN
  DELETE FROM reclaim_places WHERE source = 'job' AND row_id = OLD.id;
END;
