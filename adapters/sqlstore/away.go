package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"
	"time"
)

// patience is how long a look waits for a database that is away. A restart is
// shorter, and a lease whose heartbeat fails meanwhile lasts longer.
const patience = 30 * time.Second

// patiently asks until ask succeeds, fails for another reason than that the
// database is away, or patience or ctx ends. It then returns ask's last error.
func patiently(ctx context.Context, ask func() error) error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := ask()
		if err == nil || ctx.Err() != nil || !away(err) {
			return err
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
		case <-limit.C:
			again.Stop()
			return err
		case <-ctx.Done():
			again.Stop()
			return err
		}
	}
}

// away reports whether err says that the database could not be reached, is
// starting or ending, or had no room for one more connection or transaction: the
// question may well be answered later. No driver is linked, so each is known by
// what it can be asked.
func away(err error) bool {
	var network net.Error
	var state interface{ SQLState() string } // PostgreSQL's, appendix A
	var code interface{ Code() int }         // SQLite's result code, its kind in the last byte
	switch {
	case errors.As(err, &state):
		s := state.SQLState()
		return strings.HasPrefix(s, "08") || // connection exceptions
			strings.HasPrefix(s, "57P") || // shutting down, crashed, starting up
			s == "53300" || // too many connections
			s == "40001" || s == "40P01" // serialization failure, deadlock
	case errors.As(err, &code):
		const busy, locked = 5, 6
		return code.Code()&0xff == busy || code.Code()&0xff == locked
	}
	return errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
