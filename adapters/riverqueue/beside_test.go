package riverqueue_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/kandev/reclaim/adapters/sqlstore"
)

type hostsOwn struct {
	Text string `json:"text"`
}

func (hostsOwn) Kind() string { return "reclaim_cleanup" } // even of the same name

// An install in a schema of a host's database, where the host uses River.
func TestBesideAHostsOwnRiverNothingOfTheHostsIsAlteredOrWorked(t *testing.T) {
	t.Parallel()
	dsn := postgres().NewDSN(t)
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	driver := riverpgxv5.New(pool)
	migrations, err := rivermigrate.New(driver, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrations.Migrate(t.Context(), rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
	client, err := river.NewClient(driver, &river.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, queue := range []string{"default", "reclaim"} {
		if _, err := client.Insert(t.Context(), hostsOwn{"the host's"}, &river.InsertOpts{Queue: queue}); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	picture := func() string {
		t.Helper()
		var all strings.Builder
		for _, query := range []string{
			`SELECT string_agg(concat_ws(' ', c.relname, c.relkind, a.attname, a.atttypid::regtype), E'\n' ORDER BY c.relname, a.attnum) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.relnamespace = 'public'::regnamespace`,
			`SELECT string_agg(p.proname || md5(p.prosrc), E'\n' ORDER BY p.proname) FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace`,
			`SELECT string_agg(j::text, E'\n' ORDER BY id) FROM public.river_job j`,
			`SELECT count(*) || ' migrations' FROM public.river_migration`,
			`SELECT count(*) || ' leaders, ' || (SELECT count(*) FROM public.river_queue) || ' queues' FROM public.river_leader`,
		} {
			var text sql.NullString
			if err := db.QueryRow(query).Scan(&text); err != nil {
				t.Fatalf("%s: %v", query, err)
			}
			all.WriteString(text.String + "\n")
		}
		return all.String()
	}
	before := picture()

	if _, err := db.Exec(`CREATE SCHEMA backend`); err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, dsn: dsn + "&search_path=backend", hosts: memory(t, time.Millisecond), want: map[string]string{}, atOnce: 4}
	w.o.PerHost = 2
	own, err := sql.Open("pgx", w.dsn)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlstore.Init(t.Context(), own, sqlstore.PostgreSQL); err != nil {
		t.Fatal(err)
	}
	own.Close()
	w.open()
	w.profile()
	w.archived(5, 2)
	w.here("m")
	w.until("every job has ended", func() bool { return w.ended() == 5 })
	w.right()
	if diff := cmp.Diff(before, picture()); diff != "" {
		t.Error(diff)
	}
	var completed int
	w.until("River knows", func() bool {
		if err := db.QueryRow(`SELECT count(*) FROM backend_river.river_job WHERE state = 'completed'`).Scan(&completed); err != nil {
			t.Fatal(err)
		}
		return completed == 5
	})
}
