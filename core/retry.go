package core

import "time"

// RetryAfter is how long a job waits after its try, counted from 1, failed.
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

// HoldAfter is how long a job waits that was held for the nth time: as after a
// failure, and never longer than three hours, so that it goes on soon after what
// held it is over.
func HoldAfter(n int) time.Duration {
	delay, again := RetryAfter(n)
	const most = 3 * time.Hour
	if !again {
		return most
	}
	return min(delay, most)
}
