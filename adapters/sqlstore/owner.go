package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// maxRights bounds the borrowers and the claims of one answer.
const maxRights = 1000

var errTooMany = fmt.Errorf("more than %d tasks have a right to the directory", maxRights)

// Owner implements ports.Owners with a fixed number of queries. On a host's
// database, which has no index on metadata, three of them read every
// executors_running row, every snapshot that may name the directory and every open
// task's environment once; on our own they look up an index. An answer that cannot be given keeps the
// directory, so a database that restarts, or has no connection left, is waited
// for, 30 s at most.
func (r *Rows) Owner(ctx context.Context, query core.Owner) (o core.Ownership) {
	err := patiently(ctx, func() (err error) {
		o, err = r.owner(ctx, query)
		return err
	})
	if err != nil {
		return core.Ownership{Error: err.Error()}
	}
	return o
}

func (r *Rows) owner(ctx context.Context, query core.Owner) (o core.Ownership, err error) {
	if o.TaskTerminal, err = r.Terminal(ctx, query.TaskID); err != nil {
		return o, err
	}
	if o.OptInNow, o.Disposable, err = r.optIn(ctx, query); err != nil {
		return o, fmt.Errorf("the profile: %w", err)
	}
	if o.Environment, err = r.environment(ctx, query); err != nil {
		return o, fmt.Errorf("the environment: %w", err)
	}
	_ = r.classify(ctx) // without it the look only reads more
	var near lenders
	if o.Claims, near, err = r.claims(ctx, query); err != nil {
		return o, fmt.Errorf("other tasks' claims: %w", err)
	}
	if o.Borrowers, err = r.borrowers(ctx, query, o.Environment, near); err != nil {
		return o, fmt.Errorf("the environments' borrowers: %w", err)
	}
	return o, nil
}

// Terminal implements ports.Tasks.
func (r *Rows) Terminal(ctx context.Context, taskID string) (bool, error) {
	return r.terminal(ctx, r.db, taskID)
}

func (r *Rows) terminal(ctx context.Context, q queryer, taskID string) (bool, error) {
	var terminal bool
	err := r.row(ctx, q, `SELECT archived_at IS NOT NULL FROM tasks WHERE id = ?`, taskID).Scan(&terminal)
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("the task: %w", err)
	}
	return terminal, nil
}

func (r *Rows) environment(ctx context.Context, query core.Owner) (*core.Environment, error) {
	var e core.Environment
	which, key := `id = ?`, query.Environment
	if key == "" {
		which, key = `task_id = ? ORDER BY created_at DESC, id DESC LIMIT 1`, query.TaskID
	}
	err := r.row(ctx, r.db, `SELECT id, task_id FROM task_environments WHERE `+which, key).Scan(&e.ID, &e.TaskID)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &e, err
}

// lenders are the tasks with a claim to the directory, and the environments known
// to be theirs besides those whose rows name them: the one that a job's snapshot
// copied, and the ones their sessions in the directory run in.
type lenders struct {
	tasks        map[string]bool
	environments map[string]string // to the task
}

func (l lenders) add(task, environment string) {
	l.tasks[task] = true
	if strings.TrimSpace(environment) != "" {
		l.environments[environment] = task
	}
}

// borrowers are other tasks' sessions in the target's environment and in those of
// its claimants, less a claimant's own sessions in its own. Who inherited the
// environment of a deleted claimant is at home there and has no claim: a borrower.
func (r *Rows) borrowers(ctx context.Context, query core.Owner, live *core.Environment, near lenders) ([]core.Borrower, error) {
	own := map[string]bool{}
	if query.Environment != "" {
		own[query.Environment] = true
	}
	if live != nil && live.ID != "" {
		own[live.ID] = true
	}
	err := r.each(ctx, r.db, `SELECT id, COALESCE(workspace_path, '') FROM task_environments WHERE task_id = ?`, []any{query.TaskID}, func(scan func(...any) error) error {
		var id, path string
		err := scan(&id, &path)
		if err == nil && (strings.TrimSpace(path) == "" || core.EnvironmentClaim(query.TaskID, path, nil).Matches(query.Target)) {
			own[id] = true // an older one of the task's; what runs in it runs in the directory too
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var ids []any
	for id := range own {
		ids = append(ids, id)
	}
	for id := range near.environments {
		if !own[id] {
			ids = append(ids, id)
		}
	}
	var environments []string
	var args []any
	if len(ids) > 0 {
		environments = append(environments, `SELECT * FROM (VALUES `+strings.Repeat(`(?), `, len(ids)-1)+`(?)) named`)
		args = append(args, ids...)
	}
	if len(near.tasks) > 0 {
		environments = append(environments, `SELECT id FROM task_environments WHERE task_id IN (`+marks(len(near.tasks))+`)`)
		for task := range near.tasks {
			args = append(args, task)
		}
	}
	if len(environments) == 0 {
		return nil, nil
	}
	var all []core.Borrower
	err = r.each(ctx, r.db, `SELECT s.id, s.task_id, s.state, t.id IS NULL OR t.archived_at IS NOT NULL, s.task_environment_id, COALESCE(e.task_id, '')
		FROM task_sessions s LEFT JOIN tasks t ON t.id = s.task_id LEFT JOIN task_environments e ON e.id = s.task_environment_id
		WHERE s.task_environment_id IN (`+strings.Join(environments, ` UNION `)+`) AND s.task_id <> ? ORDER BY s.id`,
		append(args, query.TaskID), func(scan func(...any) error) error {
			var b core.Borrower
			var environment string
			if err := scan(&b.SessionID, &b.TaskID, &b.State, &b.TaskTerminal, &environment, &b.Lender); err != nil {
				return err
			}
			switch {
			case own[environment]:
				b.Lender = ""
			case b.Lender == "":
				b.Lender = near.environments[environment]
			}
			if b.Lender == b.TaskID && near.tasks[b.TaskID] {
				return nil // at home, and its claim is judged
			}
			if all = append(all, b); len(all) > maxRights {
				return errTooMany
			}
			return nil
		})
	return all, err
}

// optIn answers the switch of the profiles the directory was launched by: the
// snapshot names them, and the rows of launches that are left. It is on only
// where every one of them is. With it come the kinds of build output that all of
// them let go, of those the target was launched with.
func (r *Rows) optIn(ctx context.Context, query core.Owner) (core.OptIn, string, error) {
	var raw []byte
	err := r.row(ctx, r.db, `SELECT COALESCE(resource_snapshot, '') FROM task_resource_cleanup_jobs WHERE id = ?`, query.JobID).Scan(&raw)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", "", err
	}
	var profiles []string
	if err == nil {
		snapshot, err := core.ParseJobSnapshot(raw)
		if err != nil {
			return "", "", err
		}
		profiles = snapshot.Profiles(query.Target)
	}
	err = r.each(ctx, r.db, `SELECT COALESCE(execution_profile_id, ''), COALESCE(metadata, '') FROM executors_running WHERE task_id = ?`,
		[]any{query.TaskID}, func(scan func(...any) error) error {
			var id string
			var metadata []byte
			if err := scan(&id, &metadata); err != nil {
				return err
			}
			launch, err := core.ParseLaunch(metadata)
			if err != nil || claimOf(launch).Matches(query.Target) {
				profiles = append(profiles, strings.TrimSpace(id), launch.Profile)
			}
			return nil
		})
	if err != nil {
		return "", "", err
	}
	slices.Sort(profiles)
	profiles = slices.DeleteFunc(slices.Compact(profiles), func(id string) bool { return id == "" })
	switch {
	case len(profiles) == 0:
		return core.Unknown, "", nil
	case len(profiles) > maxRights:
		return "", "", errors.New("too many profiles")
	}
	on, kinds := 0, query.Target.Disposable
	err = r.each(ctx, r.db, `SELECT COALESCE(config, '') FROM executor_profiles WHERE id IN (`+marks(len(profiles))+`)`, anys(profiles),
		func(scan func(...any) error) error {
			var config []byte
			if err := scan(&config); err != nil {
				return err
			}
			if core.OptedIn(config) {
				on++
			}
			kinds = core.BothDisposable(kinds, core.DisposableIn(config))
			return nil
		})
	if err != nil || on != len(profiles) {
		return core.Off, "", err
	}
	return core.On, kinds, nil
}

func claimOf(l core.Launch) core.Claim {
	return core.Claim{Host: l.Target.Host, Port: l.Target.Port, User: l.Target.User, Fingerprint: l.Target.Fingerprint,
		TaskDir: l.Target.TaskDir, OptedIn: l.Target.Enabled}
}

// claims selects what other tasks' launches, cleanup jobs and environments say
// about the directory, and whose environments lead there too. A launch's row
// stands for a task that may still write there; a job for one that did; an
// environment for one that goes on, whose launch's row a host may have dropped.
func (r *Rows) claims(ctx context.Context, query core.Owner) ([]core.Claim, lenders, error) {
	near := lenders{tasks: map[string]bool{}, environments: map[string]string{}}
	found := map[core.Claim]bool{}
	running := map[string]bool{}
	add := func(c core.Claim) error {
		if found[c] = true; len(found) > maxRights {
			return errTooMany
		}
		return nil
	}
	const of = `(t.id IS NULL OR t.archived_at IS NOT NULL), EXISTS (SELECT 1 FROM task_resource_cleanup_jobs o WHERE o.task_id = x.task_id AND o.state NOT IN ` + ended + `)`
	launches, jobs, environments, args := r.places(query.Target)
	placed := args
	err := r.each(ctx, r.db, `SELECT x.task_id, COALESCE(x.metadata, ''), COALESCE(s.task_environment_id, ''), `+of+`
		FROM executors_running x LEFT JOIN tasks t ON t.id = x.task_id LEFT JOIN task_sessions s ON s.id = x.session_id
		WHERE x.task_id <> ?`+launches, append([]any{query.TaskID}, args...), func(scan func(...any) error) error {
		var task, environment string
		var metadata []byte
		var terminal, open bool
		if err := scan(&task, &metadata, &environment, &terminal, &open); err != nil {
			return err
		}
		launch, err := core.ParseLaunch(metadata)
		c := claimOf(launch)
		if err != nil {
			c = core.Claim{Unreadable: true}
		}
		c.TaskID, c.TaskTerminal, c.CleanupOpen = task, terminal, open
		if !c.Matches(query.Target) {
			return nil
		}
		running[task] = true
		near.add(task, environment)
		return add(c)
	})
	if err != nil {
		return nil, near, err
	}
	from := "task_resource_cleanup_jobs"
	if jobs == "" {
		from, jobs, args = r.mentioning(query.Target)
	}
	err = r.each(ctx, r.db, `SELECT x.task_id, x.state, COALESCE(x.resource_snapshot, ''), `+of+`
		FROM `+from+` x LEFT JOIN tasks t ON t.id = x.task_id
		WHERE x.task_id <> ?`+jobs, append([]any{query.TaskID}, args...), func(scan func(...any) error) error {
		var task, state string
		var raw []byte
		var terminal, open bool
		if err := scan(&task, &state, &raw, &terminal, &open); err != nil {
			return err
		}
		over := ports.State(state) == ports.Succeeded || ports.State(state) == ports.JobFailed || ports.State(state) == ports.Cancelled
		snapshot, err := core.ParseJobSnapshot(raw)
		if err != nil {
			if over {
				return nil // it names nothing, and nothing will make it name something
			}
			near.add(task, "")
			return add(core.Claim{TaskID: task, TaskTerminal: terminal, CleanupOpen: true, Stopped: !running[task], Unreadable: true})
		}
		environment := ""
		if e := snapshot.Environment(); e != nil {
			environment = e.ID
		}
		for _, t := range snapshot.Targets() {
			c := core.Claim{TaskID: task, Host: t.Target.Host, Port: t.Target.Port, User: t.Target.User, Fingerprint: t.Target.Fingerprint,
				TaskDir: t.Target.TaskDir, TaskTerminal: terminal, Stopped: !running[task], OptedIn: t.Target.Enabled && t.Invalid == "",
				CleanupOpen: open || !over, Unreadable: t.Unreadable && !over}
			if over && t.Outcome == core.OutcomeRemoved || !c.Matches(query.Target) {
				continue
			}
			near.add(task, environment)
			if err := add(c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, near, err
	}
	err = r.environments(ctx, query, environments, placed, of, func(c core.Claim, environment string) error {
		if running[c.TaskID] {
			return nil // its launch says more
		}
		near.add(c.TaskID, environment)
		return add(c)
	})
	if err != nil {
		return nil, near, err
	}
	all := make([]core.Claim, 0, len(found))
	for c := range found {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b core.Claim) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return all, near, nil
}

// environments hands over what other open tasks' environments claim of the
// directory, and each one's id. Where our index narrows them its rows are asked for first and
// by themselves: in one statement a planner that has never counted may read every
// environment.
func (r *Rows) environments(ctx context.Context, query core.Owner, narrowing string, args []any, of string, found func(core.Claim, string) error) error {
	wheres := []string{` AND t.archived_at IS NULL`} // a host's: no row of a task that has ended is read
	parts := [][]any{nil}
	if narrowing != "" {
		ids, err := column[string](ctx, r, r.db, narrowing, args...)
		if err != nil {
			return err
		}
		wheres, parts = nil, nil
		for part := range slices.Chunk(ids, 500) {
			wheres, parts = append(wheres, ` AND x.id IN (`+marks(len(part))+`)`), append(parts, anys(part))
		}
	}
	type row struct {
		task, environment, path, executor string
		terminal, open                    bool
	}
	var near []row // some other directory's rows are most, and need no executor
	for i, where := range wheres {
		err := r.each(ctx, r.db, `SELECT x.task_id, x.id, COALESCE(x.executor_type, ''), COALESCE(x.executor_id, ''), COALESCE(x.workspace_path, ''), `+of+`
			FROM task_environments x LEFT JOIN tasks t ON t.id = x.task_id WHERE x.task_id <> ?`+where, append([]any{query.TaskID}, parts[i]...), func(scan func(...any) error) error {
			var x row
			var kind string
			if err := scan(&x.task, &x.environment, &kind, &x.executor, &x.path, &x.terminal, &x.open); err != nil {
				return err
			}
			if kind != "ssh" && kind != "" || x.terminal || !core.EnvironmentClaim(x.task, x.path, nil).Matches(query.Target) {
				return nil
			}
			if near = append(near, x); len(near) > maxRights {
				return errTooMany
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, x := range near {
		executor, err := r.config(ctx, r.db, "executors", x.executor)
		if err != nil {
			return fmt.Errorf("the executor: %w", err)
		}
		c := core.EnvironmentClaim(x.task, x.path, executor)
		if c.CleanupOpen = x.open; !c.Matches(query.Target) {
			continue
		}
		if err := found(c, x.environment); err != nil {
			return err
		}
	}
	return nil
}

// mentioning narrows the jobs that have ended, of which a host keeps every one,
// to those that may name the target's directory, one above or one below it, as
// core compares them. It passes over a snapshot only where its text shows one
// task_dir, spelled out, that is a whole path in ASCII without an empty, "." or
// ".." name or white space at its end; every other is read. Jobs that have not ended are all read.
func (r *Rows) mentioning(t core.Target) (from, where string, args []any) {
	const table, columns = `task_resource_cleanup_jobs`, `id, task_id, state, resource_snapshot`
	names := strings.FieldsFunc(strings.TrimSpace(t.TaskDir), func(c rune) bool { return c == '/' })
	if len(names) == 0 || len(names) > 100 {
		return table, "", nil
	}
	text, position, lower, bytes, once := `CAST(resource_snapshot AS TEXT)`, `instr`, `lower(dir)`, `length(CAST(dir AS BLOB))`, ` LIMIT -1 OFFSET 0`
	if r.dialect == PostgreSQL {
		text, position, lower, bytes, once = `resource_snapshot || ''`, `strpos`, `lower(dir COLLATE "C")`, `octet_length(dir)`, ` OFFSET 0`
	}
	// Each step is worked out once a row, so that a long text is not scanned for
	// every comparison.
	step := func(values, from string) string { return `SELECT ` + columns + `, ` + values + ` FROM ` + from + once }
	from = step(text+` AS text`, table)
	from = step(`text, `+position+`(text, '"task_dir"') AS at, `+position+`(text, '\u00') AS escaped`, `(`+from+`) a`)
	from = step(`at, escaped, substr(text, at + 10) AS rest`, `(`+from+`) b`)
	from = step(`at, escaped, `+position+`(rest, '"task_dir"') AS more, substr(rest, 1, 3) AS opens, substr(rest, 3, 4096) AS dir`, `(`+from+`) c`)
	from = step(`at, escaped, more, opens, substr(dir, 1, `+position+`(dir || '"', '"') - 1) AS dir, `+position+`(dir, '"') AS closes`, `(`+from+`) d`)
	from = step(`at, escaped, more, opens, closes, `+lower+` || '/' AS dir, `+bytes+` <> length(dir) AS beyond`, `(`+from+`) e`)

	path, above := "", []any{"/"}
	for _, name := range names {
		path += "/" + strings.ToLower(strings.ToUpper(name))
		above = append(above, path+"/")
	}
	last := path[strings.LastIndexByte(path, '/'):] + "/"
	dir := func(part string) string { return position + `(x.dir, ` + part + `) > 0` }
	where = ` AND (x.state NOT IN ` + ended + ` OR x.escaped > 0 OR x.at > 0 AND (x.more > 0 OR x.opens <> ':"/' OR x.closes = 0 OR x.beyond
		OR ` + strings.Join([]string{dir(`'\'`), dir(`'//'`), dir(`'/./'`), dir(`'/../'`), dir(`' /'`), dir(`?`)}, " OR ") + ` OR x.dir IN (` + marks(len(above)) + `)))`
	return `(` + from + `)`, where, append([]any{last}, above...)
}
