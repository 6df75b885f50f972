package job

import (
	"errors"
	"fmt"
	"testing"

	"github.com/kandev/reclaim/core"
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
