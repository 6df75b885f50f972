CREATE TABLE tasks (
  id TEXT PRIMARY KEY, workspace_id TEXT NOT NULL DEFAULT '', title TEXT NOT NULL,
  metadata TEXT DEFAULT '{}', parent_id TEXT DEFAULT '', archived_by_cascade_id TEXT DEFAULT '',
  archived_at TIMESTAMP, created_at TIMESTAMP NOT NULL, updated_at TIMESTAMP NOT NULL);
CREATE INDEX ix_tasks_parent ON tasks(parent_id);
CREATE TABLE executors (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'active',
  config TEXT DEFAULT '{}', created_at TIMESTAMP NOT NULL, updated_at TIMESTAMP NOT NULL, deleted_at TIMESTAMP);
CREATE TABLE executor_profiles (
  id TEXT PRIMARY KEY, executor_id TEXT NOT NULL REFERENCES executors(id), name TEXT NOT NULL,
  config TEXT DEFAULT '{}', prepare_script TEXT DEFAULT '', cleanup_script TEXT DEFAULT '', env_vars TEXT DEFAULT '[]',
  created_at TIMESTAMP NOT NULL, updated_at TIMESTAMP NOT NULL);
CREATE TABLE executors_running (
  id TEXT PRIMARY KEY, session_id TEXT NOT NULL UNIQUE, task_id TEXT NOT NULL, executor_id TEXT NOT NULL,
  execution_profile_id TEXT NOT NULL DEFAULT '', runtime TEXT DEFAULT '', status TEXT NOT NULL DEFAULT 'starting',
  resumable INTEGER NOT NULL DEFAULT 0, resume_token TEXT DEFAULT '', agent_execution_id TEXT DEFAULT '',
  pid INTEGER DEFAULT 0, last_seen_at TIMESTAMP, metadata TEXT DEFAULT '{}',
  created_at TIMESTAMP NOT NULL, updated_at TIMESTAMP NOT NULL);
CREATE INDEX ix_running_task ON executors_running(task_id);
CREATE TABLE task_environments (
  id TEXT PRIMARY KEY, task_id TEXT NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
  executor_type TEXT NOT NULL DEFAULT '', executor_id TEXT DEFAULT '', executor_profile_id TEXT DEFAULT '',
  status TEXT NOT NULL DEFAULT 'creating', workspace_path TEXT DEFAULT '', task_dir_name TEXT DEFAULT '',
  created_at TIMESTAMP NOT NULL, updated_at TIMESTAMP NOT NULL);
CREATE INDEX ix_environments_task ON task_environments(task_id);
CREATE TABLE task_sessions (
  id TEXT PRIMARY KEY, task_id TEXT NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
  state TEXT NOT NULL DEFAULT 'CREATED', task_environment_id TEXT DEFAULT '',
  executor_id TEXT DEFAULT '', executor_profile_id TEXT DEFAULT '', metadata TEXT DEFAULT '{}',
  started_at TIMESTAMP NOT NULL, completed_at TIMESTAMP, updated_at TIMESTAMP NOT NULL);
CREATE INDEX ix_sessions_task ON task_sessions(task_id);
CREATE INDEX ix_sessions_environment ON task_sessions(task_environment_id);
CREATE TABLE task_resource_cleanup_jobs (
  id TEXT PRIMARY KEY, operation_id TEXT NOT NULL UNIQUE, task_id TEXT NOT NULL, trigger TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'pending', resource_snapshot TEXT NOT NULL DEFAULT '{}',
  attempts INTEGER NOT NULL DEFAULT 0, next_attempt_at TIMESTAMP, last_error TEXT NOT NULL DEFAULT '',
  created_at TIMESTAMP NOT NULL, updated_at TIMESTAMP NOT NULL, completed_at TIMESTAMP);
CREATE INDEX ix_cleanup_task ON task_resource_cleanup_jobs(task_id);
CREATE INDEX ix_cleanup_due ON task_resource_cleanup_jobs(state, next_attempt_at, created_at);
CREATE INDEX ix_cleanup_queue ON task_resource_cleanup_jobs(state, created_at, id);
CREATE UNIQUE INDEX ux_cleanup_one_running ON task_resource_cleanup_jobs(task_id) WHERE state = 'running' AND task_id <> '';

CREATE TABLE reclaim_leases (job_id TEXT PRIMARY KEY, attempt INTEGER NOT NULL, worker TEXT NOT NULL, beat_ms BIGINT NOT NULL);
CREATE TABLE reclaim_switches (name TEXT PRIMARY KEY, is_on INTEGER NOT NULL);
CREATE TABLE reclaim_records (
  id TEXT PRIMARY KEY, job_id TEXT NOT NULL, task_id TEXT NOT NULL, attempt INTEGER NOT NULL, kept_ms BIGINT NOT NULL, record TEXT NOT NULL);
CREATE INDEX ix_records_job ON reclaim_records(job_id);
CREATE INDEX ix_records_age ON reclaim_records(kept_ms);
CREATE TABLE reclaim_installation (id INTEGER PRIMARY KEY CHECK (id = 1), made_by TEXT NOT NULL, made_at TEXT NOT NULL);
INSERT INTO reclaim_installation (id, made_by, made_at) VALUES (1, 'github.com/kandev/reclaim', CAST(CURRENT_TIMESTAMP AS TEXT));
