package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/adapters/sqlstore"
	"github.com/kandev/reclaim/adapters/telemetry"
	"github.com/kandev/reclaim/adapters/web"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

type serveCommand struct {
	DB         string   `name:"db" placeholder:"DSN" help:"${db}"`
	Listen     string   `default:"127.0.0.1:8787" placeholder:"HOST:PORT" help:"Where the console listens. An address other machines can reach needs a token or a trusted proxy."`
	TokenFile  string   `placeholder:"FILE" help:"A file with the token people log in with. Left out: RECLAIM_TOKEN."`
	TrustProxy []string `placeholder:"ADDR" help:"A proxy, as an address or a range, whose --trust-header is believed; may be given more than once."`
	TrustHead  string   `name:"trust-header" placeholder:"NAME" help:"The header in which the proxy names the user."`
	Observe    bool     `help:"Judge everything and begin nothing."`
	PerHost    int      `default:"4" help:"Jobs at once on one host."`
	Policy     []string `placeholder:"FILE" sep:"none" help:"An operator's policy to ask as well; may be given more than once."`
}

func (serveCommand) Help() string {
	return `The worker and the operator's console in one process, until it is interrupted.
Figures for Prometheus are under /metrics; they and the spans also go out by OTLP
where OTEL_EXPORTER_OTLP_ENDPOINT says where to.

On PostgreSQL any number of machines may serve or work on one database; the
queue that hands them the jobs is at /river/.

Examples:

  reclaim serve
  reclaim serve --listen 0.0.0.0:8787 --token-file /etc/reclaim/token`
}

func (c serveCommand) Run(ctx context.Context, t *terminal) error {
	access, err := c.access(t)
	if err != nil {
		return err
	}
	if c.PerHost < 1 {
		return usage("--per-host is %d; it must be at least 1", c.PerHost)
	}
	rules, err := rulesFrom(c.Policy)
	if err != nil {
		return err
	}
	store, done, err := t.ours(ctx, c.DB)
	if err != nil {
		return err
	}
	defer done()
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return usage("the console cannot listen on %s: %s", c.Listen, sentence(err))
	}
	defer listener.Close()

	log := slog.New(slog.NewTextHandler(t.stderr, nil))
	gauges, err := observability(ctx, t.env["OTEL_EXPORTER_OTLP_ENDPOINT"] != "", log)
	if err != nil {
		return at("telemetry", err)
	}
	flush := sync.OnceFunc(func() { gauges.close(log) })
	defer flush()
	watch, err := telemetry.New(gauges.traces, gauges.metrics)
	if err != nil {
		return at("telemetry", err)
	}

	dialer := dialerFor(t, false)
	w := newWorker(store, dialer, rules, log, c.PerHost, c.Observe, watch.Attempt)
	queue, close, err := t.queue(ctx, c.DB, store, w, log)
	if err != nil {
		return err
	}
	defer close()
	now := time.Now
	if queue != nil {
		now = queue.Now
	}
	registered, err := watch.Queue(store, store.Desk().Stopped, now)
	if err != nil {
		return at("telemetry", err)
	}
	defer registered.Unregister()
	console := &web.Console{Store: store.Desk(), Access: access, Policy: rules, Metrics: gauges.scrape, Log: log, Preview: preview(store, dialer, rules)}
	if queue != nil {
		busy, err := watch.Hosts(queue.Saturation)
		if err != nil {
			return at("telemetry", err)
		}
		defer busy.Unregister()
		if console.River, err = queue.UI(ctx, "/river"); err != nil {
			return err
		}
	}
	defer flush() // while the queue can still tell its figures
	t.say("the console: http://%s/", listener.Addr())
	return serving(ctx, listener, console.Handler(), func(ctx context.Context) error {
		if queue != nil && !c.Observe {
			return at("the worker", queue.Run(ctx, w))
		}
		if !c.Observe {
			if _, err := store.Reconcile(ctx, time.Now()); err != nil {
				return at("the prepared jobs", err)
			}
		}
		return at("the worker", w.Run(ctx))
	})
}

func (c serveCommand) access(t *terminal) (web.Access, error) {
	a := web.Access{Token: t.env["RECLAIM_TOKEN"], Header: c.TrustHead}
	if c.TokenFile != "" {
		text, err := readFile(c.TokenFile, mostCase)
		if err != nil {
			return a, err
		}
		if a.Token = strings.TrimSpace(string(text)); a.Token == "" {
			return a, usage("%s: there is no token in it", c.TokenFile)
		}
	}
	for _, text := range c.TrustProxy {
		proxy, err := netip.ParsePrefix(text)
		if addr, single := netip.ParseAddr(text); single == nil {
			proxy, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return a, usage("--trust-proxy %s is neither an address nor a range", text)
		}
		a.Proxies = append(a.Proxies, proxy)
	}
	if err := a.Check(c.Listen); err != nil {
		return a, usage("%w; see --listen, --token-file, --trust-proxy and --trust-header in reclaim serve --help", err)
	}
	return a, nil
}

// serving runs the console and the worker until ctx ends or one of them fails;
// then it ends the other.
func serving(ctx context.Context, listener net.Listener, handler http.Handler, work func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	served, worked := make(chan error, 1), make(chan error, 1)
	go func() {
		served <- server.Serve(listener)
		stop()
	}()
	go func() {
		worked <- work(ctx)
		stop()
	}()
	<-ctx.Done()
	closing, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	if server.Shutdown(closing) != nil {
		server.Close()
	}
	errWork, errServe := <-worked, <-served
	if errors.Is(errServe, http.ErrServerClosed) {
		errServe = nil
	}
	return errors.Join(errWork, at("the console", errServe))
}

// preview judges what archiving a task would reclaim: the snapshot an archive
// would make, put through an attempt that stops before anything is changed.
// Every question is asked for real; that the task has ended is assumed, and its
// cleanup script has not run.
func preview(store *sqlstore.Store, dialer ports.Dialer, rules ports.Policy) func(context.Context, string) ([]core.Record, error) {
	return func(ctx context.Context, taskID string) ([]core.Record, error) {
		snapshot, err := store.Foreseen(ctx, taskID)
		if err != nil {
			return nil, err
		}
		phase := &job.Phase{Dialer: dialer, Owners: asIfEnded{store}, Policy: rules, Observe: true, Limit: 3 * time.Minute}
		report, err := phase.Run(ctx, job.Job{ID: "preview", TaskID: taskID, Trigger: core.Archive, Attempt: 1, Snapshot: snapshot,
			Stops: job.StopsSucceeded, Hook: core.HookNone})
		records := make([]core.Record, 0, len(report.Targets))
		for _, target := range report.Targets {
			records = append(records, target.Record)
		}
		if errors.Is(err, job.ErrCutShort) {
			return records, fmt.Errorf("the preview was cut short: %w", err)
		}
		return records, nil // a target's own failure stands in its record
	}
}

// asIfEnded answers who owns a directory once the task has ended.
type asIfEnded struct{ ports.Owners }

func (a asIfEnded) Owner(ctx context.Context, q core.Owner) core.Ownership {
	answer := a.Owners.Owner(ctx, q)
	answer.TaskTerminal = answer.TaskTerminal || answer.Error == "" && q.JobID == "preview"
	return answer
}
