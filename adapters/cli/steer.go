package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kandev/reclaim/adapters/replay"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// jobView is a job as jobs and job show tell it.
type jobView struct {
	ID        string       `json:"id"`
	TaskID    string       `json:"task_id"`
	Trigger   core.Trigger `json:"trigger"`
	State     ports.State  `json:"state"`
	Attempts  int          `json:"attempts"`
	Uncounted int          `json:"uncounted"`       // of the attempts: held or cut short, and none of the eight tries
	Next      string       `json:"next_attempt_at"` // RFC 3339; empty unless it waits
	LastError string       `json:"last_error"`
	Created   string       `json:"created_at"`
	Completed string       `json:"completed_at"`
	Targets   []targetView `json:"targets"`
}

// targetView is what a job's snapshot tells of one directory.
type targetView struct {
	Target  core.Target   `json:"target"`
	Outcome string        `json:"outcome"`
	Reason  core.Reason   `json:"reason"`
	Cause   core.Cause    `json:"cause"`
	Fault   core.Fault    `json:"fault"`
	Detail  string        `json:"detail"`
	Cure    []core.Remedy `json:"cure"`
	Begun   int           `json:"begun"`
}

func viewJob(j ports.Job) jobView {
	_, uncounted := j.Counted()
	v := jobView{ID: j.ID, TaskID: j.TaskID, Trigger: j.Trigger, State: j.State, Attempts: j.Attempts, Uncounted: uncounted, LastError: j.LastError,
		Created: stamp(j.CreatedAt), Completed: stamp(j.CompletedAt), Targets: []targetView{}}
	if j.State == ports.RetryWait {
		v.Next = stamp(j.NextAttemptAt)
	}
	snapshot, err := core.ParseJobSnapshot(j.Snapshot)
	if err != nil {
		return v
	}
	for _, t := range snapshot.Targets() {
		view := targetView{Target: t.Target, Outcome: t.Outcome, Reason: t.Reason, Cause: t.Cause, Fault: t.Fault, Detail: t.Detail, Cure: t.Cure, Begun: t.Begun}
		view.Cure = replay.Cures(core.Result{Outcome: t.Outcome, Cause: t.Cause, Fault: t.Fault, Cure: t.Cure})
		if t.Invalid != "" && view.Detail == "" {
			view.Detail = t.Invalid
		}
		v.Targets = append(v.Targets, view)
	}
	return v
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// ago is how long something is past or to come, for people.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	if d := now.Sub(t); d >= 0 {
		return inWords(d) + " ago"
	}
	return "in " + inWords(t.Sub(now))
}

func inWords(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}

func stateStyle(state string) style {
	switch state {
	case string(ports.Succeeded):
		return good
	case string(ports.JobFailed):
		return bad
	case string(ports.RetryWait), string(ports.Cancelled):
		return kept
	}
	return ""
}

// jobTable lists jobs, one line each.
func (t *terminal) jobTable(jobs []ports.Job, now time.Time) {
	var rows [][]string
	for _, j := range jobs {
		v := viewJob(j)
		came := []string{}
		for _, target := range v.Targets {
			switch target.Outcome {
			case core.OutcomeSkipped:
				came = append(came, "kept: "+string(target.Reason))
			case core.OutcomeFailed:
				came = append(came, "failed: "+string(target.Fault))
			case "":
			default:
				came = append(came, target.Outcome)
			}
		}
		next := ""
		if j.State == ports.RetryWait {
			next = ago(j.NextAttemptAt, now)
		}
		rows = append(rows, []string{brief(j.ID), j.TaskID, string(j.State), fmt.Sprint(v.Attempts - v.Uncounted), next, strings.Join(came, ", ")})
	}
	t.table([]string{"job", "task", "state", "tries", "next", "came to"}, rows, 1, func(column int, cell string) style {
		if column == 2 {
			return stateStyle(cell)
		}
		return ""
	})
}

// jobStory tells one job whole.
func (t *terminal) jobStory(j ports.Job, now time.Time) {
	v := viewJob(j)
	t.printf("%s  job %s, task %s (%s)\n", t.paint(stateStyle(string(v.State)), string(v.State)), clean(v.ID), clean(v.TaskID), clean(string(v.Trigger)))
	times := fmt.Sprintf("%d times", v.Attempts)
	if v.Attempts == 1 {
		times = "once"
	}
	if v.Uncounted > 0 {
		times += fmt.Sprintf(" (%d held or cut short, which is none of its eight tries)", v.Uncounted)
	}
	line := fmt.Sprintf("made %s, attempted %s", ago(j.CreatedAt, now), times)
	if v.Next != "" {
		line += ", next " + ago(j.NextAttemptAt, now)
	}
	if v.Completed != "" {
		line += ", ended " + ago(j.CompletedAt, now)
	}
	t.paragraph("  ", line)
	if v.LastError != "" {
		t.paragraph("  ", "last error: "+v.LastError)
		var told []core.Fault
		for _, target := range v.Targets {
			told = append(told, target.Fault)
		}
		t.remedies(replay.CuresOf(v.LastError, told...))
	}
	for _, target := range v.Targets {
		r := core.Result{Outcome: target.Outcome, Reason: target.Reason, Cause: target.Cause, Fault: target.Fault}
		if r.Outcome == "" {
			r.Outcome = "not judged yet"
		}
		r.Target = target.Target
		t.printf("\n")
		t.headline(r)
		t.paragraph("  ", target.Detail)
		t.cures(target.Cure)
	}
}

// brief is as much of a job's id as people need: commands take the beginning of
// an id for the whole where only one job's begins so.
func brief(id string) string {
	if len(id) == 36 && strings.Count(id, "-") == 4 {
		return id[:8]
	}
	return id
}

// whole is the id that begins with what was typed.
func whole(ctx context.Context, desk ports.Desk, typed string) (string, error) {
	_, err := desk.Job(ctx, typed)
	if !errors.Is(err, ports.ErrNotFound) || len(typed) < 4 {
		return typed, at("job "+typed, err)
	}
	jobs, err := desk.Jobs(ctx, "", 1<<30)
	if err != nil {
		return "", at("the jobs", err)
	}
	var found []string
	for _, j := range jobs {
		if strings.HasPrefix(j.ID, typed) {
			found = append(found, j.ID)
		}
	}
	switch len(found) {
	case 0:
		return "", at("job "+typed, ports.ErrNotFound)
	case 1:
		return found[0], nil
	}
	return "", usage("job %s: the ids of %d jobs begin so; write more of it", typed, len(found))
}

// at turns an error of storage about one row into the sentence and status of a
// command.
func at(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ports.ErrNotFound) && strings.Contains(what, ","): // of several, which?
		return usage("%s: %s", what, strings.ReplaceAll(err.Error(), "\n", "; "))
	case errors.Is(err, ports.ErrNotFound):
		return usage("%s: there is none", what)
	}
	said := sentence(err)
	if errors.Is(err, ports.ErrRefused) { // that it is refused is plain from what it says
		said = strings.TrimSuffix(strings.TrimPrefix(said, "refused: "), ": refused")
	}
	if strings.HasPrefix(said, "the "+what+" ") {
		return errors.New(said)
	}
	return fmt.Errorf("%s: %s", what, said)
}

type jobsCommand struct {
	DB    string `name:"db" placeholder:"DSN" help:"${db}"`
	State string `enum:",prepared,pending,running,retry_wait,succeeded,failed,cancelled" default:"" placeholder:"STATE" help:"Only jobs in this state."`
	Limit int    `default:"100" help:"At most so many, newest first."`
	JSON  bool   `help:"Print one JSON document."`
}

func (jobsCommand) Help() string {
	return `Examples:

  reclaim jobs --db sqlite:reclaim.db
  reclaim jobs --state retry_wait --json`
}

func (c jobsCommand) Run(ctx context.Context, t *terminal) error {
	if c.Limit < 1 {
		return usage("--limit is %d; it must be at least 1", c.Limit)
	}
	desk, done, err := t.desk(ctx, c.DB)
	if err != nil {
		return err
	}
	defer done()
	jobs, err := desk.Jobs(ctx, ports.State(c.State), c.Limit)
	if err != nil {
		return at("the jobs", err)
	}
	if c.JSON {
		views := []jobView{}
		for _, j := range jobs {
			views = append(views, viewJob(j))
		}
		return t.json(map[string]any{"jobs": views})
	}
	if len(jobs) == 0 {
		t.printf("no jobs\n")
		return nil
	}
	t.jobTable(jobs, time.Now())
	return nil
}

type jobCommand struct {
	Show   jobShowCommand   `cmd:"" help:"Tell one job whole: its directories, what became of them, its records."`
	Retry  jobRetryCommand  `cmd:"" help:"Make a waiting job due now, or a failed one into a new job."`
	Cancel jobCancelCommand `cmd:"" help:"End a job that waits."`
}

type jobShowCommand struct {
	ID   string `arg:"" help:"The job's id, or its beginning."`
	DB   string `name:"db" placeholder:"DSN" help:"${db}"`
	Save string `placeholder:"DIR" type:"path" help:"Write the job's records into DIR, for replay and explain."`
	JSON bool   `help:"Print one JSON document."`
}

func (jobShowCommand) Help() string {
	return `Examples:

  reclaim job show ID
  reclaim job show ID --save records && reclaim explain records/*.json`
}

func (c jobShowCommand) Run(ctx context.Context, t *terminal) error {
	desk, done, err := t.desk(ctx, c.DB)
	if err != nil {
		return err
	}
	defer done()
	id, err := whole(ctx, desk, c.ID)
	if err != nil {
		return err
	}
	j, err := desk.Job(ctx, id)
	if err != nil {
		return at("job "+id, err)
	}
	records, err := desk.RecordsOf(ctx, j.ID)
	if err != nil {
		return at("the records of job "+j.ID, err)
	}
	type filed struct {
		ID       string      `json:"id"`
		At       string      `json:"at"`
		File     string      `json:"file"`
		Attempt  int         `json:"attempt"`
		Observed bool        `json:"observed"` // by work --observe: it is no attempt, and began nothing
		Result   core.Result `json:"result"`
	}
	all := []filed{}
	for _, r := range records {
		f := filed{ID: r.ID, At: stamp(r.At), Attempt: r.Record.Snapshot.Attempt, Observed: r.Record.Observed, Result: r.Record.Result}
		if c.Save != "" {
			if f.File, err = saveRecord(c.Save, r.ID, r.Record); err != nil {
				return err
			}
		}
		all = append(all, f)
	}
	if c.JSON {
		return t.json(struct {
			jobView
			Records []filed `json:"records"`
		}{viewJob(j), all})
	}
	t.jobStory(j, time.Now())
	if len(all) > 0 {
		t.printf("\nrecords\n")
		for i, f := range all {
			what := fmt.Sprintf("attempt %d", f.Attempt)
			if f.Observed {
				what = fmt.Sprintf("observed before attempt %d", f.Attempt)
			}
			t.item(fmt.Sprintf("%s, %s: %s", what, ago(records[i].At, time.Now()), headline(f.Result)))
			if len(viewJob(j).Targets) > 1 {
				t.printf("    %s\n", clean(place(f.Result.Target)))
			}
			t.printf("    %s\n", clean(cmp.Or(f.File, f.ID)))
		}
	}
	return nil
}

type jobRetryCommand struct {
	ID   string `arg:"" help:"The job's id, or its beginning."`
	DB   string `name:"db" placeholder:"DSN" help:"${db}"`
	JSON bool   `help:"Print one JSON document."`
}

func (c jobRetryCommand) Run(ctx context.Context, t *terminal) error {
	return t.changed(ctx, c.DB, c.JSON, c.ID, "due now", func(desk ports.Desk, id string) (string, error) { return desk.Retry(ctx, id) })
}

type jobCancelCommand struct {
	ID   string `arg:"" help:"The job's id, or its beginning."`
	DB   string `name:"db" placeholder:"DSN" help:"${db}"`
	JSON bool   `help:"Print one JSON document."`
}

func (c jobCancelCommand) Run(ctx context.Context, t *terminal) error {
	return t.changed(ctx, c.DB, c.JSON, c.ID, "cancelled", func(desk ports.Desk, id string) (string, error) { return id, desk.Cancel(ctx, id) })
}

// changed makes one change to a job of ours and tells which job it is now.
func (t *terminal) changed(ctx context.Context, dsn string, asJSON bool, typed, word string, change func(desk ports.Desk, id string) (string, error)) error {
	store, done, err := t.ours(ctx, dsn)
	if err != nil {
		return err
	}
	defer done()
	job, err := whole(ctx, store.Desk(), typed)
	if err != nil {
		return err
	}
	id, err := change(store.Desk(), job)
	if err != nil {
		err = at("job "+job, err)
		if j, failed := store.Desk().Job(ctx, job); failed == nil {
			if advice := instead(word, j.State); advice != "" {
				err = fmt.Errorf("%w; %s", err, advice)
			}
		}
		return err
	}
	if asJSON {
		return t.json(map[string]string{"job": id})
	}
	t.printf("%s  job %s\n", t.paint(good, word), clean(id))
	return nil
}

// instead is what to do where a job's state does not allow a change.
func instead(word string, state ports.State) string {
	switch {
	case word == "due now" && (state == ports.Succeeded || state == ports.Cancelled):
		return "only one that waits or was given up is retried; what it kept is judged again with reclaim kept retry"
	case word == "due now":
		return "it is at work or about to be"
	case word == "cancelled" && state == ports.Running:
		return "only one that waits is cancelled; reclaim stop-all on keeps every removal from beginning"
	case word == "cancelled" && state != ports.Pending && state != ports.RetryWait:
		return "it has ended, so there is nothing to cancel"
	}
	return ""
}

type keptCommand struct {
	List  keptListCommand  `cmd:"" default:"withargs" help:"List the directories that were kept (the default)."`
	Retry keptRetryCommand `cmd:"" help:"Have a kept directory judged again, as a new job."`
}

type keptListCommand struct {
	DB   string `name:"db" placeholder:"DSN" help:"${db}"`
	JSON bool   `help:"Print one JSON document."`
}

func (keptListCommand) Help() string {
	return `Largest first, each with its reason, its age and what a person can do.

Examples:

  reclaim kept
  reclaim kept --json
  reclaim kept retry JOB`
}

// keptView is one preserved directory.
type keptView struct {
	core.Result
	Title   string `json:"title"`
	At      string `json:"at"`
	Judging string `json:"judging"` // the job that judges it again
	Begun   bool   `json:"begun"`   // a removal began and was not seen to end
}

func (c keptListCommand) Run(ctx context.Context, t *terminal) error {
	desk, done, err := t.desk(ctx, c.DB)
	if err != nil {
		return err
	}
	defer done()
	all, err := desk.Kept(ctx)
	if err != nil {
		return at("the kept directories", err)
	}
	slices.SortStableFunc(all, func(a, b ports.Kept) int { return cmp.Compare(b.Result.Bytes, a.Result.Bytes) })
	for i := range all {
		all[i].Result.Cure = replay.Cures(all[i].Result)
	}
	if c.JSON {
		views := []keptView{}
		for _, k := range all {
			views = append(views, keptView{Result: k.Result, Title: k.TaskTitle, At: stamp(k.At), Judging: k.Judging, Begun: k.Begun})
		}
		return t.json(map[string]any{"kept": views})
	}
	if len(all) == 0 {
		t.printf("nothing was kept\n")
		return nil
	}
	for i, k := range all {
		if i > 0 {
			t.printf("\n")
		}
		t.kept(k, time.Now())
	}
	return nil
}

func (t *terminal) kept(k ports.Kept, now time.Time) {
	t.headline(k.Result)
	size := ""
	if k.Result.Bytes > 0 {
		size = replay.Size(k.Result.Bytes) + ", "
	}
	line := fmt.Sprintf("%sjudged %s, task %s", size, ago(k.At, now), k.Result.TaskID)
	if k.TaskTitle != "" {
		line += " (" + k.TaskTitle + ")"
	}
	t.paragraph("  ", line+", job "+brief(k.Result.JobID))
	if k.Begun {
		t.paragraph("  ", "A removal of it began and was not seen to end; the next attempt puts that right first.")
	}
	t.paragraph("  ", k.Result.Detail)
	t.remedies(k.Result.Cure)
	if k.Judging != "" && k.Judging != k.Result.JobID {
		t.paragraph("  ", "It is judged again by job "+brief(k.Judging)+".")
	}
}

type keptRetryCommand struct {
	Job  string `arg:"" name:"JOB" help:"The job that kept it, as kept tells it."`
	DB   string `name:"db" placeholder:"DSN" help:"${db}"`
	JSON bool   `help:"Print one JSON document."`
}

func (c keptRetryCommand) Run(ctx context.Context, t *terminal) error {
	return t.changed(ctx, c.DB, c.JSON, c.Job, "judged again by", func(desk ports.Desk, id string) (string, error) { return desk.JudgeAgain(ctx, id) })
}

type stopAllCommand struct {
	Switch string `arg:"" enum:"on,off,show" default:"show" help:"on: no removal begins any more. off: they may again. show: which of the two."`
	DB     string `name:"db" placeholder:"DSN" help:"${db}"`
	JSON   bool   `help:"Print one JSON document."`
}

func (stopAllCommand) Help() string {
	return `Every attempt reads the switch before it begins a removal; one that has begun is
not touched. A job that the switch stops keeps its eight tries: it is judged again
within three hours, for as long as the switch is on, and goes on within three hours
after it is off; sooner with reclaim job retry.

Examples:

  reclaim stop-all on
  reclaim stop-all off`
}

func (c stopAllCommand) Run(ctx context.Context, t *terminal) error {
	store, done, err := t.ours(ctx, c.DB)
	if err != nil {
		return err
	}
	defer done()
	desk := store.Desk()
	if c.Switch != "show" {
		if err := desk.SetStopped(ctx, c.Switch == "on"); err != nil {
			return at("the switch", err)
		}
	}
	stopped, err := desk.Stopped(ctx)
	if err != nil {
		return at("the switch", err)
	}
	if c.JSON {
		return t.json(map[string]bool{"stop_all": stopped})
	}
	if stopped {
		t.printf("%s  no removal begins\n", t.paint(bad, "stop-all is on"))
	} else {
		t.printf("%s  removals may begin\n", t.paint(good, "stop-all is off"))
		if c.Switch == "off" {
			t.paragraph("  ", "Jobs that were held go on within three hours; at once with reclaim job retry ID.")
		}
	}
	return nil
}

type profilesCommand struct {
	DB   string `name:"db" placeholder:"DSN" help:"${db}"`
	JSON bool   `help:"Print one JSON document."`
}

// profileView is one executor profile and what its switch reaches.
type profileView struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Host    string `json:"host"`
	User    string `json:"user"`
	Port    string `json:"port"` // as stored; empty: 22
	Tree    string `json:"tree"`
	Reclaim bool   `json:"reclaim"`
	Stored  string `json:"stored"` // as stored; only the exact word true is on
	// The kinds of build output that may go with its directories; left out for none.
	Disposable string `json:"disposable,omitempty"`
}

func viewProfile(p ports.Profile) profileView {
	root := strings.TrimRight(cmp.Or(strings.TrimSpace(p.Root), "~/.kandev"), "/")
	return profileView{ID: p.ID, Name: p.Name, Host: cmp.Or(p.Host, p.Alias, p.Executor), User: p.User, Port: p.Port, Tree: root + "/tasks/", Reclaim: p.Reclaim == "true", Stored: p.Reclaim,
		Disposable: core.ReadDisposable(p.Disposable)}
}

// login is the host with who logs in and where, as ssh is told it.
func (v profileView) login() string {
	text := v.Host
	if v.User != "" {
		text = v.User + "@" + text
	}
	if v.Port != "" && v.Port != "22" {
		text += ":" + v.Port
	}
	return text
}

func (c profilesCommand) Run(ctx context.Context, t *terminal) error {
	desk, done, err := t.desk(ctx, c.DB)
	if err != nil {
		return err
	}
	defer done()
	all, err := desk.Profiles(ctx)
	if err != nil {
		return at("the profiles", err)
	}
	views := []profileView{}
	for _, p := range all {
		views = append(views, viewProfile(p))
	}
	if c.JSON {
		return t.json(map[string]any{"profiles": views})
	}
	if len(views) == 0 {
		t.printf("no SSH profiles\n")
		return nil
	}
	var rows [][]string
	for _, v := range views {
		rows = append(rows, []string{v.ID, v.Name, onOff(v.Reclaim), v.login(), v.Tree})
	}
	t.table([]string{"profile", "name", "reclaim", "host", "tree"}, rows, 4, func(column int, cell string) style {
		if column == 2 && cell == "on" {
			return kept
		}
		return ""
	})
	for _, v := range views {
		if v.Disposable != "" {
			t.item(fmt.Sprintf("with directories of %s build output may go: %s", clean(v.ID), strings.ReplaceAll(v.Disposable, ",", ", ")))
		}
	}
	return nil
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

type profileCommand struct {
	Add profileAddCommand `cmd:"" help:"Write down where tasks run and how to get there; its switch is off."`
	Set profileSetCommand `cmd:"" help:"Turn the switch of one executor profile on or off, and say which build output may go."`
}

type profileSetCommand struct {
	ID      string `arg:"" help:"The profile's id."`
	Reclaim string `default:"" enum:"on,off," placeholder:"on|off" help:"on: directories of tasks launched from now on with this profile are removed for good when the task is archived or deleted, if nothing in them would be lost."`
	// A pointer: "" takes every kind away.
	Disposable *string `placeholder:"KINDS" help:"Which kinds of build output may go with directories launched from now on, parted by commas; empty: none. The kinds: ${kinds}."`
	DB         string  `name:"db" placeholder:"DSN" help:"${db}"`
	JSON       bool    `help:"Print one JSON document."`
}

// kindWords are the kinds of build output, for a help text.
func kindWords() string {
	var words []string
	for _, kind := range core.DisposableKinds() {
		words = append(words, kind.Word)
	}
	return strings.Join(words, ",")
}

func (profileSetCommand) Help() string {
	text := "What the kinds of build output mean. Each is judged by what its tool leaves,\nonly where a tracked .gitignore excludes it, and never with a person's file, a\nsecret or a repository in it:\n\n"
	for _, kind := range core.DisposableKinds() {
		word := kind.Word
		for _, line := range wrap(kind.Means, width-14) {
			text += fmt.Sprintf("  %-9s %s\n", word, line)
			word = ""
		}
	}
	return text
}

func (c profileSetCommand) Run(ctx context.Context, t *terminal) error {
	if c.Reclaim == "" && c.Disposable == nil {
		return usage("say what to set: --reclaim on|off, --disposable KINDS, or both")
	}
	if c.Disposable != nil {
		if _, err := core.WriteDisposable(*c.Disposable); err != nil {
			return usage("--disposable: %w", err)
		}
	}
	store, done, err := t.ours(ctx, c.DB)
	if err != nil {
		return err
	}
	defer done()
	desk := store.Desk()
	// The kinds first: a switch that comes on finds them as they are meant.
	if c.Disposable != nil {
		if err := desk.SetDisposable(ctx, c.ID, *c.Disposable); err != nil {
			return at("profile "+c.ID, err)
		}
	}
	if c.Reclaim != "" {
		if err := desk.SetReclaim(ctx, c.ID, c.Reclaim == "on"); err != nil {
			return at("profile "+c.ID, err)
		}
	}
	all, err := desk.Profiles(ctx)
	if err != nil {
		return at("the profiles", err)
	}
	for _, p := range all {
		if p.ID != c.ID {
			continue
		}
		v := viewProfile(p)
		if c.JSON {
			return t.json(v)
		}
		if v.Reclaim {
			t.printf("%s for profile %s (%s)\n", t.paint(kept, "on"), clean(v.ID), clean(v.Name))
			t.paragraph("  ", fmt.Sprintf("A task launched with it from now on leaves a directory below %s on %s that is removed for good when the task is archived or deleted, if nothing in it would be lost. Un-archiving makes the checkout again. Existing directories are not touched.", v.Tree, v.login()))
		} else {
			t.printf("%s for profile %s (%s)\n  every directory stays\n", t.paint(good, "off"), clean(v.ID), clean(v.Name))
		}
		if c.Disposable != nil {
			for _, kind := range core.DisposableKinds() {
				if strings.Contains(","+v.Disposable+",", ","+kind.Word+",") {
					t.item("with directories launched from now on may go, as " + kind.Word + ": " + kind.Means)
				}
			}
			if v.Disposable == "" {
				t.item("no build output may go: every ignored file keeps its directory")
			}
		}
	}
	return nil
}
