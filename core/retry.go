package core

import "time"

// RetryAfter is how long a job waits after its attempt, counted from 1, failed.
// After the eighth it does not wait any more: the job has failed.
func RetryAfter(attempt int) (time.Duration, bool) {
	delays := [...]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour}
	if attempt < 1 {
		return delays[0], true
	}
	if attempt > len(delays) {
		return 0, false
	}
	return delays[attempt-1], true
}
