package sqlstore

import (
	"context"
	"database/sql"
	"errors"
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

// places narrows the two claim queries by our index of directories. On a host's
// database, and for a directory that cannot be compared by its name, it does not
// narrow.
func (r *Rows) places(t core.Target) (launches, jobs string, args []any) {
	names, ok := core.DirectoryNames(t.TaskDir)
	if !r.ours || !ok || len(names) > 100 {
		return "", "", nil
	}
	path := "/" + strings.Join(names, "/")
	// The same last name; a directory above ours ends in one of our names; one
	// below ours begins with our path.
	buckets := []any{unclassified, everywhere}
	for _, name := range names {
		buckets = append(buckets, "="+name)
	}
	narrowed := func(source string) string {
		return ` AND x.id IN (SELECT row_id FROM reclaim_places WHERE source = '` + source + `' AND bucket IN (` + marks(len(buckets)) + `)
			UNION SELECT row_id FROM reclaim_places WHERE source = '` + source + `' AND path >= ? AND path < ?)`
	}
	return narrowed("launch"), narrowed("job"), append(buckets, path+"/", path+"0")
}

// place is where one row leads.
type place struct{ bucket, path string }

func placeOf(dir string) place {
	names, ok := core.DirectoryNames(dir)
	if !ok {
		return place{bucket: everywhere}
	}
	return place{"=" + names[len(names)-1], "/" + strings.Join(names, "/")}
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
		if t.Target.TaskDir != "" {
			all = append(all, placeOf(t.Target.TaskDir))
		}
	}
	return all
}

// classify fills in where unclassified rows lead, some hundred at a time. Until
// it has, every look reads them: its failure costs time and nothing else.
func (r *Rows) classify(ctx context.Context) error {
	if !r.ours {
		return nil
	}
	var some bool
	if err := r.row(ctx, r.db, `SELECT EXISTS (SELECT 1 FROM reclaim_places WHERE bucket = ?)`, unclassified).Scan(&some); err != nil || !some {
		return err
	}
	return r.in(ctx, func(tx *sql.Tx) error {
		if r.dialect == PostgreSQL {
			// Of many at once one does it, and the others do not wait: they would
			// all want the same rows.
			var mine bool
			if err := r.row(ctx, tx, `SELECT pg_try_advisory_xact_lock(hashtextextended('reclaim places ' || current_schema(), 0))`).Scan(&mine); err != nil || !mine {
				return err
			}
		}
		return errors.Join(
			r.classifyIn(ctx, tx, "launch", `SELECT p.seq, x.id, COALESCE(x.metadata, '') FROM reclaim_places p JOIN executors_running x ON x.id = p.row_id WHERE p.source = 'launch' AND p.bucket = ?`, placesOfLaunch),
			r.classifyIn(ctx, tx, "job", `SELECT p.seq, x.id, COALESCE(x.resource_snapshot, '') FROM reclaim_places p JOIN task_resource_cleanup_jobs x ON x.id = p.row_id WHERE p.source = 'job' AND p.bucket = ?`, placesOfJob))
	})
}

func (r *Rows) classifyIn(ctx context.Context, tx *sql.Tx, source, query string, read func([]byte) []place) error {
	type row struct {
		seq    int64
		id     string
		places []place
	}
	var all []row
	err := r.each(ctx, tx, query+` LIMIT 500`, []any{unclassified}, func(scan func(...any) error) error {
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
		return err
	}
	for _, found := range all {
		// A row that changed since it was read has another entry by now.
		n, err := r.changed(ctx, tx, `DELETE FROM reclaim_places WHERE seq = ?`, found.seq)
		if err != nil {
			return err
		}
		for _, p := range found.places {
			if n == 1 {
				if _, err := r.changed(ctx, tx, `INSERT INTO reclaim_places (source, row_id, bucket, path) VALUES (?, ?, ?, ?)`, source, found.id, p.bucket, p.path); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
