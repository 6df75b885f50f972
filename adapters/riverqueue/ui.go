package riverqueue

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"riverqueue.com/riverui"
)

// uiSecurity is the policy of River's pages: nothing from elsewhere, and no
// script that is not a file of theirs. They set styles as they run.
const uiSecurity = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

// UI is River's own pages, to be served under prefix ("/river") to people who
// may see and steer the jobs: it asks nobody who they are. It works until ctx
// ends.
//
// A job can be run at once there and the queue paused, for every machine.
// Cancelling and deleting are refused: the row would bring the job back.
func (q *Queue) UI(ctx context.Context, prefix string) (http.Handler, error) {
	pages, err := riverui.NewHandler(&riverui.HandlerOpts{Endpoints: riverui.NewEndpoints(q.client, nil), Logger: quiet(q.o.Log), Prefix: prefix})
	if err != nil {
		return nil, fmt.Errorf("the pages of River: %w", err)
	}
	if err := pages.Start(ctx); err != nil {
		return nil, fmt.Errorf("the pages of River: %w", err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", uiSecurity)
		switch inside := strings.TrimPrefix(r.URL.Path, prefix); {
		case r.Method == http.MethodGet, r.Method == http.MethodHead, inside == "/api/jobs/retry", strings.HasPrefix(inside, "/api/queues/"):
			pages.ServeHTTP(w, r)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusConflict)
			fmt.Fprintln(w, `{"message":"River only says when a job runs. Cancel it on its page in the console, or un-archive its task."}`)
		}
	}), nil
}
