package job

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

func TestAC_D2_AJobIsFinalOnlyWhenEveryFailedTargetIs(t *testing.T) {
	final := &TargetError{Failure: core.Failed{Fault: core.PathRefused, Final: true}}
	passing := &TargetError{Failure: core.Failed{Fault: core.Unreachable}}
	for _, row := range []struct {
		name string
		err  error
		want bool
	}{
		{"nothing failed", nil, false},
		{"one final", final, true},
		{"one passing", passing, false},
		{"both", errors.Join(final, passing), false},
		{"two final, joined twice", errors.Join(errors.Join(final), final), true},
		{"a final one whose outcome could not be recorded", errors.Join(final, errors.New("disk full")), false},
		{"wrapped", fmt.Errorf("job 7: %w", final), true},
		{"a joined pair, wrapped", fmt.Errorf("job 7: %w", errors.Join(final, passing)), false},
		{"cut short", fmt.Errorf("%w: shutdown", ErrCutShort), false},
		{"claims final, is zero", &TargetError{}, false},
	} {
		if got := Final(row.err); got != row.want {
			t.Errorf("%s: got %v, want %v", row.name, got, row.want)
		}
	}
}

// balky is a row that takes an outcome only at a later try.
type balky struct {
	ports.Row
	refuses int
	err     error
	tries   int
}

func (b *balky) Conclude(context.Context, ports.Conclusion) error {
	if b.tries++; b.tries <= b.refuses {
		return b.err
	}
	return nil
}

func TestAnOutcomeIsWrittenOnceStorageCanAgain(t *testing.T) {
	away := errors.New("the database is away")
	for name, row := range map[string]struct {
		balky
		want  error
		tries int
	}{
		"away for a moment":    {balky{refuses: 3, err: away}, nil, 4},
		"away for good":        {balky{refuses: 1000, err: away}, away, 7}, // 50 ms doubled: the seventh try is the last within 5 s
		"the row is another's": {balky{refuses: 1000, err: ports.ErrRowLost}, ports.ErrRowLost, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, done := context.WithTimeout(t.Context(), stateWrite)
			defer done()
			if err := (&Phase{Row: &row.balky}).conclude(ctx, ports.Conclusion{}); !errors.Is(err, row.want) || row.balky.tries != row.tries {
				t.Errorf("%s: %v after %d tries", name, err, row.balky.tries)
			}
		})
	}
}
