package riverqueue

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// clock is the database's, carried on by this machine's monotonic clock: River
// writes instants that other machines compare with theirs, and a machine whose
// clock is wrong or jumps must not move anybody's job.
type clock struct{ at atomic.Pointer[reading] }

type reading struct {
	database time.Time
	here     time.Time // read with the monotonic clock
}

func (c *clock) set(ctx context.Context, pool *pgxpool.Pool) error {
	before := time.Now()
	var now time.Time
	if err := pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil {
		return fmt.Errorf("the database's clock: %w", err)
	}
	c.at.Store(&reading{now, before.Add(time.Since(before) / 2)})
	return nil
}

// Now implements rivertype.TimeGenerator.
func (c *clock) Now() time.Time {
	r := c.at.Load()
	return r.database.Add(time.Since(r.here))
}

// NowOrNil implements rivertype.TimeGenerator: statements that can ask the
// database do.
func (c *clock) NowOrNil() *time.Time { return nil }
