package telemetry

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// stand is a phase against ports that answer as told.
type stand struct {
	dial  core.NeverRan
	owner func()
}

func (s stand) Dial(context.Context, core.Target) (ports.Session, core.NeverRan) { return nil, s.dial }
func (s stand) Owner(context.Context, core.Owner) core.Ownership {
	if s.owner != nil {
		s.owner()
	}
	return core.Ownership{TaskTerminal: true, OptInNow: core.On, Environment: &core.Environment{ID: "e", TaskID: "t"}}
}
func (stand) Rule(context.Context, core.Facts) core.Ruling {
	return core.Ruling{Allow: true, Passed: core.Barriers(), Digest: "d"}
}
func (stand) Begin(context.Context, core.Begin) core.Begun     { return core.Begun{} }
func (stand) Conclude(context.Context, ports.Conclusion) error { return nil }

const snapshot = `{"task_environment":{"id":"e","task_id":"t"},"ssh_task_dirs":[{"host":"build-1","port":22,"host_fingerprint":"SHA256:k","workdir_root":"/srv","task_dir":"/srv/tasks/a","enabled":true}]}`

func listen(t *testing.T) (*Watch, *tracetest.SpanRecorder, *metric.ManualReader) {
	t.Helper()
	spans, reader := tracetest.NewSpanRecorder(), metric.NewManualReader()
	w, err := New(trace.NewTracerProvider(trace.WithSpanProcessor(spans)), metric.NewMeterProvider(metric.WithReader(reader)))
	if err != nil {
		t.Fatal(err)
	}
	return w, spans, reader
}

func collect(t *testing.T, reader *metric.ManualReader) map[string]metricdata.Aggregation {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	found := map[string]metricdata.Aggregation{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			found[m.Name] = m.Data
		}
	}
	return found
}

func TestAnAttemptIsASpanWithASpanForEveryQuestion(t *testing.T) {
	w, spans, reader := listen(t)
	s := stand{dial: core.NeverRan{Fault: core.Unreachable, Detail: "no route"}}
	phase := &job.Phase{Dialer: s, Owners: s, Policy: s, Row: s, Watch: w.Attempt}
	if _, err := phase.Run(t.Context(), job.Job{ID: "j", TaskID: "t", Trigger: core.Archive, Attempt: 3, Snapshot: []byte(snapshot), Stops: job.StopsSucceeded, Hook: core.HookNone}); err == nil {
		t.Fatal("an unreachable host is no failure")
	}
	var names []string
	ended := spans.Ended()
	for _, span := range ended {
		names = append(names, span.Name())
		if span.Name() != "reclaim.attempt" && span.Parent().SpanID() != ended[len(ended)-1].SpanContext().SpanID() {
			t.Errorf("%s is no child of the attempt", span.Name())
		}
	}
	if diff := cmp.Diff([]string{"reclaim.question.owner", "reclaim.question.rule", "reclaim.question.greet", "reclaim.attempt"}, names); diff != "" {
		t.Error(diff)
	}
	for _, i := range []int{2, 3} {
		if status := ended[i].Status(); status.Code != codes.Error || status.Description != "unreachable" {
			t.Errorf("%s: %v", names[i], status)
		}
	}
	figures := collect(t, reader)
	faults := figures["reclaim.faults"].(metricdata.Sum[int64]).DataPoints
	if host, _ := faults[0].Attributes.Value("host"); len(faults) != 1 || faults[0].Value != 1 || host.AsString() != "build-1" {
		t.Errorf("faults: %v", faults)
	}
	attempts := figures["reclaim.attempts"].(metricdata.Sum[int64]).DataPoints
	if reason, _ := attempts[0].Attributes.Value("reason"); len(attempts) != 1 || reason.AsString() != "unreachable" {
		t.Errorf("attempts: %v", attempts)
	}
	for _, name := range []string{"reclaim.attempt.duration", "reclaim.question.duration"} {
		if points := figures[name].(metricdata.Histogram[float64]).DataPoints; len(points) == 0 || points[0].Count == 0 {
			t.Errorf("%s: %v", name, points)
		}
	}
}

func TestAnAnswerThatIsDroppedStillEndsItsSpan(t *testing.T) {
	w, spans, _ := listen(t)
	ctx, stop := context.WithCancel(t.Context())
	s := stand{owner: stop}
	phase := &job.Phase{Dialer: s, Owners: s, Policy: s, Row: s, Watch: w.Attempt}
	if _, err := phase.Run(ctx, job.Job{ID: "j", TaskID: "t", Trigger: core.Archive, Attempt: 1, Snapshot: []byte(snapshot), Stops: job.StopsSucceeded, Hook: core.HookNone}); !errors.Is(err, job.ErrCutShort) {
		t.Fatal(err)
	}
	if started, ended := len(spans.Started()), len(spans.Ended()); started != 2 || ended != 2 {
		t.Errorf("%d spans began, %d ended", started, ended)
	}
}

type queue struct {
	depth map[ports.State]int
	due   []ports.Job
	err   error
}

func (q *queue) Depth(context.Context) (map[ports.State]int, error) { return q.depth, q.err }
func (q *queue) Due(context.Context, int) ([]ports.Job, error)      { return q.due, q.err }

func TestTheQueuesDepthAndTheAgeOfItsOldestDueJob(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		what string
		due  []ports.Job
		want float64
	}{
		{"nothing is due", nil, 0},
		{"pending since it was made", []ports.Job{{State: ports.Pending, CreatedAt: now.Add(-time.Minute)}}, 60},
		{"due since its wait ended", []ports.Job{{State: ports.RetryWait, CreatedAt: now.Add(-time.Hour), NextAttemptAt: now.Add(-2 * time.Second)}}, 2},
		{"by a clock that is ahead", []ports.Job{{State: ports.Pending, CreatedAt: now.Add(time.Minute)}}, 0},
	} {
		w, _, reader := listen(t)
		q := &queue{depth: map[ports.State]int{ports.Pending: 7}, due: c.due}
		if _, err := w.Queue(q, func(context.Context) (bool, error) { return true, nil }, func() time.Time { return now }); err != nil {
			t.Fatal(err)
		}
		figures := collect(t, reader)
		if got := figures["reclaim.queue.oldest_due"].(metricdata.Gauge[float64]).DataPoints[0].Value; got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
		depth := map[string]int64{}
		for _, p := range figures["reclaim.queue.depth"].(metricdata.Gauge[int64]).DataPoints {
			state, _ := p.Attributes.Value("state")
			depth[state.AsString()] = p.Value
		}
		if diff := cmp.Diff(map[string]int64{"pending": 7, "prepared": 0, "running": 0, "retry_wait": 0, "failed": 0}, depth); diff != "" {
			t.Error(diff)
		}
		if got := figures["reclaim.stopped"].(metricdata.Gauge[int64]).DataPoints[0].Value; got != 1 {
			t.Errorf("stopped: %d", got)
		}
	}
}

// A queue that cannot be read must not look like an empty one.
func TestAQueueThatCannotBeReadTellsNoFigure(t *testing.T) {
	w, _, reader := listen(t)
	if _, err := w.Queue(&queue{err: errors.New("gone")}, func(context.Context) (bool, error) { return false, nil }, time.Now); err != nil {
		t.Fatal(err)
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err == nil {
		t.Error("no error")
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			t.Errorf("%s is told", m.Name)
		}
	}
}

func TestHowBusyEveryHostIs(t *testing.T) {
	w, _, reader := listen(t)
	if _, err := w.Hosts(func(_ context.Context, tell func(string, int, int, int)) error {
		tell("a", 4, 17, 4)
		tell("b", 1, 0, 4)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	got := map[string][]int64{}
	figures := collect(t, reader)
	for _, name := range []string{"reclaim.host.running", "reclaim.host.waiting", "reclaim.host.cap"} {
		for _, p := range figures[name].(metricdata.Gauge[int64]).DataPoints {
			host, _ := p.Attributes.Value("host")
			got[host.AsString()] = append(got[host.AsString()], p.Value)
		}
	}
	if diff := cmp.Diff(map[string][]int64{"a": {4, 17, 4}, "b": {1, 0, 4}}, got); diff != "" {
		t.Error(diff)
	}
}
