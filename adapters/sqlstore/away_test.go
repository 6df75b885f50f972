package sqlstore_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/sqlstore"
	"github.com/kandev/reclaim/adapters/sqlstore/pgtest"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports/porttest"
)

// A look that storage cannot answer keeps the directory for good: a restart of
// the database must not do that to every job of that moment.
func TestAC_003_3_ADatabaseThatIsAwayForAWhileIsWaitedFor(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, "fsync=off", "max_connections=5", "superuser_reserved_connections=0", "max_wal_senders=0")
	dsn := server.NewDSN(t)
	open := func() *sql.DB {
		db, err := sql.Open("pgx", dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	db := open()
	if err := sqlstore.Init(t.Context(), db, sqlstore.PostgreSQL); err != nil {
		t.Fatal(err)
	}
	store, err := sqlstore.Open(t.Context(), db, sqlstore.PostgreSQL)
	if err != nil {
		t.Fatal(err)
	}
	seed{db, sqlstore.PostgreSQL}.PutTask(t, porttest.Task{ID: "t1"})
	question := core.Owner{TaskID: "t1", Target: target("t1")}

	// come is what brings the database back while the look waits for it.
	asked := func(t *testing.T, come func()) {
		answer := make(chan core.Ownership)
		go func() { answer <- store.Owner(t.Context(), question) }()
		select {
		case o := <-answer:
			t.Fatalf("it was answered while the database was away: %+v", o)
		case <-time.After(300 * time.Millisecond): // several tries later
		}
		come()
		if o := <-answer; o.Error != "" {
			t.Errorf("%+v", o)
		}
	}
	t.Run("restarted", func(t *testing.T) {
		server.Away(t)
		asked(t, func() { server.Back(t) })
	})
	t.Run("no connection left", func(t *testing.T) {
		db.SetMaxIdleConns(0)
		others := open()
		var held []*sql.Conn
		for {
			c, err := others.Conn(t.Context())
			if err != nil {
				break
			}
			held = append(held, c)
		}
		if len(held) != 5 {
			t.Fatalf("%d connections", len(held))
		}
		asked(t, func() {
			for _, c := range held {
				c.Close()
			}
			others.SetMaxIdleConns(0)
		})
	})
}

type (
	sqlState string
	code     int
)

func (s sqlState) Error() string    { return string(s) }
func (s sqlState) SQLState() string { return string(s) }
func (c code) Error() string        { return fmt.Sprint(int(c)) }
func (c code) Code() int            { return int(c) }

// What the database says it cannot do will not be otherwise later, and is the
// answer at once.
func TestOnlyADatabaseThatIsAwayIsWaitedFor(t *testing.T) {
	for _, c := range []struct {
		err  error
		away bool
	}{
		{sqlState("57P01"), true},  // ended by an administrator
		{sqlState("57P03"), true},  // starting up
		{sqlState("08006"), true},  // connection failure
		{sqlState("53300"), true},  // too many connections
		{sqlState("40P01"), true},  // deadlock
		{sqlState("42P01"), false}, // no such table
		{sqlState("42501"), false}, // not permitted
		{sqlState("57014"), false}, // cancelled by the statement's timeout
		{sqlState("53100"), false}, // disk full
		{code(5), true},            // SQLITE_BUSY
		{code(261), true},          // SQLITE_BUSY_RECOVERY
		{code(6), true},            // SQLITE_LOCKED
		{code(11), false},          // SQLITE_CORRUPT
		{code(1), false},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true},
		{driver.ErrBadConn, true},
		{io.ErrUnexpectedEOF, true},
		{sql.ErrNoRows, false},
		{errors.New("sql: database is closed"), false},
	} {
		if got := sqlstore.Away(fmt.Errorf("the task: %w", c.err)); got != c.away {
			t.Errorf("%T %v: %v", c.err, c.err, got)
		}
	}
}
