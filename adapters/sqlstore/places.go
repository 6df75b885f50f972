package sqlstore

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/kandev/reclaim/core"
)

// Buckets of reclaim_places that every look at claims reads: rows nobody has
// classified yet, and rows whose directory cannot be compared by its name. Every
// other bucket is "=" and the directory's last name, folded.
const (
	unclassified = "?"
	everywhere   = "!"
)

// places narrows the claim queries by our index of directories: two by a condition,
// that of environments by a query of their ids. On a host's database, and for a
// directory that cannot be compared by its name, it does not narrow.
func (r *Rows) places(t core.Target) (launches, jobs, environments string, args []any) {
	names, ok := core.DirectoryNames(t.TaskDir)
	if !r.ours || !ok || len(names) > 100 {
		return "", "", "", nil
	}
	path := "/" + strings.Join(names, "/")
	// The same last name; a directory above ours ends in one of our names; one
	// below ours begins with our path.
	buckets := []any{unclassified, everywhere}
	for _, name := range names {
		buckets = append(buckets, "="+name)
	}
	ids := func(source string) string {
		return `SELECT row_id FROM reclaim_places WHERE source = '` + source + `' AND bucket IN (` + marks(len(buckets)) + `)
			UNION SELECT row_id FROM reclaim_places WHERE source = '` + source + `' AND path >= ? AND path < ?`
	}
	return ` AND x.id IN (` + ids("launch") + `)`, ` AND x.id IN (` + ids("job") + `)`, ids("environment"), append(buckets, path+"/", path+"0")
}

// place is where one row leads.
type place struct{ bucket, path string }

func placeOf(dir string) place {
	names, ok := core.DirectoryNames(dir)
	path := "/" + strings.Join(names, "/")
	// PostgreSQL stores no NUL and indexes no longer text.
	if !ok || len(path) > 1000 || strings.Contains(path, "\x00") {
		return place{bucket: everywhere}
	}
	return place{"=" + names[len(names)-1], path}
}

func placesOfEnvironment(path []byte) []place {
	if strings.TrimSpace(string(path)) == "" {
		return nil
	}
	return []place{placeOf(string(path))}
}

func placesOfLaunch(metadata []byte) []place {
	launch, err := core.ParseLaunch(metadata)
	switch {
	case err != nil:
		return []place{{bucket: everywhere}}
	case launch.Target.TaskDir == "":
		return nil
	}
	return []place{placeOf(launch.Target.TaskDir)}
}

func placesOfJob(raw []byte) []place {
	snapshot, err := core.ParseJobSnapshot(raw)
	if err != nil {
		return []place{{bucket: everywhere}}
	}
	var all []place
	for _, t := range snapshot.Targets() {
		if t.Unreadable {
			all = append(all, place{bucket: everywhere})
		} else {
			all = append(all, placeOf(t.Target.TaskDir))
		}
	}
	return all
}

// page is how many unclassified rows of a kind are read at a time.
const page = 500

// classify fills in where every unclassified row leads. Until it has, every look
// reads those rows: its failure costs time and nothing else.
func (r *Rows) classify(ctx context.Context) error {
	if !r.ours {
		return nil
	}
	done := 0
	for {
		n, more, err := r.classifyPage(ctx)
		if done += n; err != nil {
			return err
		}
		if !more {
			break
		}
	}
	if done < page || r.dialect != PostgreSQL {
		return nil
	}
	// Who counts the table's rows while most are unclassified tells the planner
	// that a look wants most of them; it would read them all each time, until
	// somebody counts again.
	_, err := r.db.ExecContext(ctx, `ANALYZE reclaim_places`)
	return err
}

// classifyPage says how many rows it filled in, and whether there are more.
func (r *Rows) classifyPage(ctx context.Context) (n int, more bool, err error) {
	var some bool
	if err := r.row(ctx, r.db, `SELECT EXISTS (SELECT 1 FROM reclaim_places WHERE bucket = ?)`, unclassified).Scan(&some); err != nil || !some {
		return 0, false, err
	}
	err = r.in(ctx, func(tx *sql.Tx) error {
		if r.dialect == PostgreSQL {
			// Of many at once one does it, and the others do not wait: they would
			// all want the same rows.
			var mine bool
			if err := r.row(ctx, tx, `SELECT pg_try_advisory_xact_lock(hashtextextended('reclaim places ' || current_schema(), 0))`).Scan(&mine); err != nil || !mine {
				return err
			}
		}
		launches, err := r.classifyIn(ctx, tx, "launch", `SELECT p.seq, x.id, COALESCE(x.metadata, '') FROM reclaim_places p JOIN executors_running x ON x.id = p.row_id WHERE p.source = 'launch' AND p.bucket = ?`, placesOfLaunch)
		if err != nil {
			return err
		}
		jobs, err := r.classifyIn(ctx, tx, "job", `SELECT p.seq, x.id, COALESCE(x.resource_snapshot, '') FROM reclaim_places p JOIN task_resource_cleanup_jobs x ON x.id = p.row_id WHERE p.source = 'job' AND p.bucket = ?`, placesOfJob)
		if err != nil {
			return err
		}
		environments, err := r.classifyIn(ctx, tx, "environment", `SELECT p.seq, x.id, COALESCE(x.workspace_path, '') FROM reclaim_places p JOIN task_environments x ON x.id = p.row_id WHERE p.source = 'environment' AND p.bucket = ?`, placesOfEnvironment)
		n, more = launches+jobs+environments, launches == page || jobs == page || environments == page
		return err
	})
	return n, more, err
}

// classifyIn says how many rows it read.
func (r *Rows) classifyIn(ctx context.Context, tx *sql.Tx, source, query string, read func([]byte) []place) (int, error) {
	type row struct {
		seq    int64
		id     string
		places []place
	}
	var all []row
	err := r.each(ctx, tx, query+` LIMIT ?`, []any{unclassified, page}, func(scan func(...any) error) error {
		var found row
		var raw []byte
		if err := scan(&found.seq, &found.id, &raw); err != nil {
			return err
		}
		found.places = read(raw)
		all = append(all, found)
		return nil
	})
	if err != nil {
		return 0, err
	}
	if len(all) == 0 {
		return 0, nil
	}
	var seqs, values []any
	first, last := all[0].seq, all[0].seq
	for _, found := range all {
		seqs = append(seqs, found.seq)
		first, last = min(first, found.seq), max(last, found.seq)
	}
	// A row that changed since it was read has another entry by now. The bounds
	// keep a planner from reading the whole table for a long list.
	left, err := column[int64](ctx, r, tx, `DELETE FROM reclaim_places WHERE seq >= ? AND seq <= ? AND seq IN (`+marks(len(seqs))+`) RETURNING seq`,
		append([]any{first, last}, seqs...)...)
	if err != nil {
		return 0, err
	}
	still := map[int64]bool{}
	for _, seq := range left {
		still[seq] = true
	}
	for _, found := range all {
		for _, p := range found.places {
			if still[found.seq] {
				values = append(values, source, found.id, p.bucket, p.path)
			}
		}
	}
	for some := range slices.Chunk(values, 4*page) {
		if _, err := r.changed(ctx, tx, `INSERT INTO reclaim_places (source, row_id, bucket, path) VALUES (?, ?, ?, ?)`+strings.Repeat(`, (?, ?, ?, ?)`, len(some)/4-1), some...); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}
