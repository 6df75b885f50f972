// Package telemetry tells OpenTelemetry what the phase does: a span an attempt
// and a question, and the figures that dashboards and alerts are made of. It
// speaks the API only; which SDK listens, and where it sends, is the program's
// choice.
//
//	watch, err := telemetry.New(otel.GetTracerProvider(), otel.GetMeterProvider())
//	phase := &job.Phase{..., Watch: watch.Attempt}
//
// grafana.json is a dashboard and rules.yaml are alerts over these figures, under
// the names the Prometheus exporter gives them.
package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

const scope = "github.com/kandev/reclaim"

// Watch turns attempts into spans and figures. It is safe for concurrent use.
type Watch struct {
	tracer    trace.Tracer
	meter     metric.Meter
	attempts  metric.Int64Counter
	faults    metric.Int64Counter
	bytes     metric.Int64Counter
	duration  metric.Float64Histogram
	questions metric.Float64Histogram
	trips     metric.Int64Histogram
}

// New makes the instruments. An error names the one that the provider refused.
func New(traces trace.TracerProvider, metrics metric.MeterProvider) (*Watch, error) {
	w := &Watch{tracer: traces.Tracer(scope), meter: metrics.Meter(scope)}
	var errs [6]error
	w.attempts, errs[0] = w.meter.Int64Counter("reclaim.attempts", metric.WithUnit("{attempt}"),
		metric.WithDescription("Attempts at a directory, by what they came to and why."))
	w.faults, errs[1] = w.meter.Int64Counter("reclaim.faults", metric.WithUnit("{fault}"),
		metric.WithDescription("Attempts that could not be completed, by fault and host."))
	w.bytes, errs[2] = w.meter.Int64Counter("reclaim.size", metric.WithUnit("By"),
		metric.WithDescription("Bytes of the directories attempts looked at, by what the attempts came to."))
	w.duration, errs[3] = w.meter.Float64Histogram("reclaim.attempt.duration", metric.WithUnit("s"),
		metric.WithDescription("How long attempts took."), metric.WithExplicitBucketBoundaries(.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900))
	w.questions, errs[4] = w.meter.Float64Histogram("reclaim.question.duration", metric.WithUnit("s"),
		metric.WithDescription("How long questions waited for their answer."), metric.WithExplicitBucketBoundaries(.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 600))
	w.trips, errs[5] = w.meter.Int64Histogram("reclaim.round_trips", metric.WithUnit("{trip}"),
		metric.WithDescription("Scripts sent to the host in one attempt."), metric.WithExplicitBucketBoundaries(0, 1, 2, 3, 4, 5, 10))
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Attempt is for job.Phase.Watch.
func (w *Watch) Attempt(ctx context.Context, s core.Snapshot) job.Watched {
	ctx, span := w.tracer.Start(ctx, "reclaim.attempt", trace.WithAttributes(attribute.String("task_id", s.TaskID), attribute.String("job_id", s.JobID),
		attribute.Int("attempt", s.Attempt), attribute.String("host", s.Target.Host), attribute.String("remote_task_dir", s.Target.TaskDir)))
	return &attempt{watch: w, ctx: ctx, span: span, began: time.Now()}
}

// attempt is one attempt under way. Its methods are called one after the other.
type attempt struct {
	watch *Watch
	ctx   context.Context
	span  trace.Span
	began time.Time

	question trace.Span // nil between questions
	asked    core.Query
	since    time.Time
}

func (a *attempt) Asked(q core.Query) {
	a.asked, a.since = q, time.Now()
	_, a.question = a.watch.tracer.Start(a.ctx, "reclaim.question."+core.QueryName(q))
}

func (a *attempt) Answered(e core.Exchange) {
	if heard, ok := e.Answer.(core.Heard); ok {
		switch reply := heard.Reply.(type) {
		case core.NeverRan:
			a.question.SetStatus(codes.Error, string(reply.Fault))
		case core.Unclear:
			a.question.SetStatus(codes.Error, string(reply.Doubt))
		}
	}
	a.close()
}

// close ends the question that is open.
func (a *attempt) close() {
	if a.question == nil {
		return
	}
	a.watch.questions.Record(a.ctx, time.Since(a.since).Seconds(), metric.WithAttributes(attribute.String("question", core.QueryName(a.asked))))
	a.question.End()
	a.question = nil
}

func (a *attempt) Ended(record core.Record) {
	if a.question != nil {
		a.question.SetStatus(codes.Error, "its answer was dropped")
	}
	a.close()
	r := record.Result
	outcome := attribute.String("outcome", r.Outcome)
	why := string(r.Reason)
	if r.Outcome == core.OutcomeFailed {
		why = string(r.Fault)
	}
	reason := attribute.String("reason", why)
	a.watch.attempts.Add(a.ctx, 1, metric.WithAttributes(outcome, reason, attribute.String("cause", string(r.Cause))))
	if r.Fault != "" {
		a.watch.faults.Add(a.ctx, 1, metric.WithAttributes(attribute.String("fault", string(r.Fault)), attribute.String("host", r.Target.Host), attribute.Bool("final", r.Final)))
	}
	a.watch.bytes.Add(a.ctx, r.Bytes, metric.WithAttributes(outcome))
	a.watch.duration.Record(a.ctx, time.Since(a.began).Seconds(), metric.WithAttributes(outcome))
	a.watch.trips.Record(a.ctx, int64(r.RoundTrips), metric.WithAttributes(outcome))
	a.span.SetAttributes(outcome, reason, attribute.String("cause", string(r.Cause)), attribute.Int64("bytes", r.Bytes), attribute.Int("round_trips", r.RoundTrips))
	if r.Outcome == core.OutcomeFailed {
		a.span.SetStatus(codes.Error, string(r.Fault))
	}
	a.span.End()
}

// Queue is what the figures of the queue are read from, at every collection.
type Queue interface {
	// Depth counts the jobs that have not ended, and those given up, by state.
	Depth(ctx context.Context) (map[ports.State]int, error)
	// Due lists the jobs that could be leased now, oldest first.
	Due(ctx context.Context, limit int) ([]ports.Job, error)
}

// Queue tells the depth of the queue, the age of its oldest due job, and whether
// all removals are stopped. Unregister the result before the queue is closed.
func (w *Watch) Queue(queue Queue, stopped func(context.Context) (bool, error), now func() time.Time) (metric.Registration, error) {
	depth, errDepth := w.meter.Int64ObservableGauge("reclaim.queue.depth", metric.WithUnit("{job}"), metric.WithDescription("Jobs, by state."))
	age, errAge := w.meter.Float64ObservableGauge("reclaim.queue.oldest_due", metric.WithUnit("s"), metric.WithDescription("For how long the oldest due job has been due; 0 when none is."))
	halt, errHalt := w.meter.Int64ObservableGauge("reclaim.stopped", metric.WithDescription("1 while all removals are stopped."))
	for _, err := range []error{errDepth, errAge, errHalt} {
		if err != nil {
			return nil, err
		}
	}
	return w.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		counted, err := queue.Depth(ctx)
		if err != nil {
			return err
		}
		for _, state := range []ports.State{ports.Prepared, ports.Pending, ports.Running, ports.RetryWait, ports.JobFailed} {
			o.ObserveInt64(depth, int64(counted[state]), metric.WithAttributes(attribute.String("state", string(state))))
		}
		due, err := queue.Due(ctx, 1)
		if err != nil {
			return err
		}
		oldest := 0.0
		for _, j := range due {
			since := j.CreatedAt
			if j.State == ports.RetryWait {
				since = j.NextAttemptAt
			}
			oldest = max(0, now().Sub(since).Seconds())
		}
		o.ObserveFloat64(age, oldest)
		on, err := stopped(ctx)
		if err != nil {
			return err
		}
		n := int64(0)
		if on {
			n = 1
		}
		o.ObserveInt64(halt, n)
		return nil
	}, depth, age, halt)
}

// Hosts tells how busy each host is, where many machines share a cap: jobs in
// flight, due jobs held back by the cap, and the cap. read tells every host that
// has any. Unregister the result before what read needs is closed.
func (w *Watch) Hosts(read func(ctx context.Context, tell func(host string, running, waiting, perHost int)) error) (metric.Registration, error) {
	running, errRunning := w.meter.Int64ObservableGauge("reclaim.host.running", metric.WithUnit("{job}"), metric.WithDescription("Jobs in flight on the host, over all machines."))
	waiting, errWaiting := w.meter.Int64ObservableGauge("reclaim.host.waiting", metric.WithUnit("{job}"), metric.WithDescription("Due jobs that wait for room on the host."))
	most, errMost := w.meter.Int64ObservableGauge("reclaim.host.cap", metric.WithUnit("{job}"), metric.WithDescription("Jobs that may be in flight on the host."))
	for _, err := range []error{errRunning, errWaiting, errMost} {
		if err != nil {
			return nil, err
		}
	}
	return w.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		return read(ctx, func(host string, inFlight, heldBack, perHost int) {
			on := metric.WithAttributes(attribute.String("host", host))
			o.ObserveInt64(running, int64(inFlight), on)
			o.ObserveInt64(waiting, int64(heldBack), on)
			o.ObserveInt64(most, int64(perHost), on)
		})
	}, running, waiting, most)
}
