package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/adapters/sqlstore"
	"github.com/kandev/reclaim/adapters/worker"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

type workCommand struct {
	DB      string   `name:"db" placeholder:"DSN" help:"${db}"`
	Once    bool     `help:"Run everything due, then end."`
	Observe bool     `help:"Judge everything and begin nothing: no job is taken, no directory touched and no agent stopped; where an agent still runs it says what an attempt would do first."`
	PerHost int      `default:"4" help:"Jobs at once on one host."`
	Policy  []string `placeholder:"FILE" sep:"none" help:"An operator's policy to ask as well; may be given more than once."`
	JSON    bool     `help:"Print one JSON document; needs --once."`
}

func (workCommand) Help() string {
	return `Without --once it works until it is interrupted; a removal in flight is then left
to its host, and its job is taken up again later. The log goes to standard error.
With --once the exit status is 0 when the jobs that were due were tried, whatever
came of them; what became of each is told at the end, and the log with -v.

On PostgreSQL any number of machines may work on one database: River hands them
the jobs, and --per-host counts over all of them. --once and --observe take what
is due themselves, under the same cap.

Examples:

  reclaim work
  reclaim work --once --json
  reclaim work --once --observe`
}

func (c workCommand) Run(ctx context.Context, t *terminal) error {
	if c.JSON && !c.Once {
		return usage("--json prints one document at the end, so it needs --once")
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
	level := slog.LevelInfo
	if c.Once && !t.verbose {
		level = slog.LevelError // what became of each job is told at the end
	}
	log := slog.New(slog.NewTextHandler(t.stderr, &slog.HandlerOptions{Level: level}))
	w := newWorker(store, dialerFor(t, false), rules, log, c.PerHost, c.Observe, nil)
	if !c.Observe {
		queue, close, err := t.queue(ctx, c.DB, store, w, log)
		if err != nil {
			return err
		}
		defer close()
		if queue != nil && !c.Once {
			return at("the worker", queue.Run(ctx, w))
		}
	}
	if !c.Observe {
		if _, err := store.Reconcile(ctx, time.Now()); err != nil {
			return at("the prepared jobs", err)
		}
	}
	if !c.Once {
		return at("the worker", w.Run(ctx))
	}
	ended, err := w.Once(ctx)
	if c.JSON {
		if printed := t.json(map[string]any{"jobs": ended}); err == nil {
			err = printed
		}
	} else {
		t.ended(ended)
	}
	return at("the worker", err)
}

// newWorker puts the stand-alone backend together.
func newWorker(store *sqlstore.Store, dialer ports.Dialer, rules ports.Policy, log *slog.Logger, perHost int, observe bool, watch func(context.Context, core.Snapshot) job.Watched) *worker.Worker {
	host, err := os.Hostname()
	if err != nil {
		host = "somewhere"
	}
	dialer = worker.Fenced(dialer)
	return &worker.Worker{
		Name: fmt.Sprintf("%s-%d-%s", host, os.Getpid(), strings.ToLower(rand.Text()[:8])),
		Jobs: store, Tasks: store, Sessions: store, Prepared: store, Log: log, PerHost: perHost, Observe: observe,
		Stops: &worker.Stopping{Dialer: dialer, Sessions: store, Jobs: store, Log: log},
		Phase: &job.Phase{Dialer: dialer, Owners: store, Policy: rules, Row: store, Records: store, Log: log, PerHost: perHost, Observe: observe, Watch: watch},
	}
}

func (t *terminal) ended(jobs []worker.Ended) {
	if len(jobs) == 0 {
		t.printf("nothing is due\n")
		return
	}
	for _, j := range jobs {
		times := fmt.Sprintf("attempt %d", j.Attempts)
		if j.Attempts == 0 {
			times = "not attempted yet"
		}
		if j.State == ports.RetryWait && j.Error != "" {
			times += ", again in " + inWords(j.Delay)
		}
		t.printf("%s  job %s, task %s, %s\n", t.paint(stateStyle(string(j.State)), string(j.State)), clean(j.ID), clean(j.TaskID), times)
		for _, r := range j.Results {
			t.headline(r)
			if r.Outcome != core.OutcomeRemoved {
				t.paragraph("    ", r.Detail)
			}
		}
		if j.Error != "" && len(j.Results) == 0 { // what kept the phase from running
			t.paragraph("  ", j.Error)
		}
	}
}
