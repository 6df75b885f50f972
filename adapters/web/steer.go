package web

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kandev/reclaim/adapters/replay"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

func (c *Console) overview(r *http.Request) (answer, error) {
	ctx := r.Context()
	var body struct {
		On, Profiles, Kept, Waiting, Failed, Leftovers int
		Held                                           int64
	}
	profiles, err := c.Store.Profiles(ctx)
	if err != nil {
		return answer{}, err
	}
	kept, err := c.Store.Kept(ctx)
	if err != nil {
		return answer{}, err
	}
	jobs, err := c.Store.Jobs(ctx, "", mostRows)
	if err != nil {
		return answer{}, err
	}
	body.Profiles, body.Kept = len(profiles), len(kept)
	for _, p := range profiles {
		if (profile{p}).On() {
			body.On++
		}
	}
	for _, j := range jobs {
		switch j.State {
		case ports.Pending, ports.Running, ports.RetryWait:
			body.Waiting++
		case ports.JobFailed:
			body.Failed++
		}
	}
	for _, k := range kept {
		body.Held += k.Result.Bytes
		if k.Begun {
			body.Leftovers++
		}
	}
	return answer{page: "overview", nav: "overview", title: "Overview", body: body}, nil
}

// mostRows bounds what one page lists.
const mostRows = 500

func (c *Console) profiles(r *http.Request) (answer, error) {
	stored, err := c.Store.Profiles(r.Context())
	all := make([]profile, len(stored))
	for i, p := range stored {
		all[i] = profile{p}
	}
	return answer{page: "profiles", nav: "profiles", title: "Profiles", body: all}, err
}

func (c *Console) profile(r *http.Request) (profile, error) {
	profiles, err := c.Store.Profiles(r.Context())
	if err != nil {
		return profile{}, err
	}
	for _, p := range profiles {
		if p.ID == r.PathValue("id") {
			return profile{p}, nil
		}
	}
	return profile{}, ports.ErrNotFound
}

type confirmation struct {
	Profile profile
	Changed bool // since the person looked
	Unread  bool // the box was not ticked
}

func (c *Console) confirmOn(r *http.Request) (answer, error) {
	p, err := c.profile(r)
	return answer{page: "confirm", nav: "profiles", title: "Turn reclamation on", body: confirmation{Profile: p}}, err
}

// switchOn turns the switch on only for what the person confirmed: a profile
// that meanwhile speaks of another host or tree is shown again.
func (c *Console) switchOn(r *http.Request) (answer, error) {
	p, err := c.profile(r)
	if err != nil {
		return answer{}, err
	}
	host, _ := p.BlastHost()
	asked := confirmation{Profile: p, Changed: r.PostFormValue("host") != host || r.PostFormValue("tree") != p.Tree(), Unread: r.PostFormValue("understood") != "yes"}
	if asked.Changed || asked.Unread {
		return answer{page: "confirm", nav: "profiles", title: "Turn reclamation on", body: asked}, nil
	}
	if err := c.Store.SetReclaim(r.Context(), p.ID, true); err != nil {
		return answer{}, err
	}
	c.did(r, "reclamation was turned on", "profile", p.ID, "host", host, "tree", p.Tree())
	return answer{to: "/profiles?did=on"}, nil
}

func (c *Console) switchOff(r *http.Request) (answer, error) {
	p, err := c.profile(r)
	if err != nil {
		return answer{}, err
	}
	if err := c.Store.SetReclaim(r.Context(), p.ID, false); err != nil {
		return answer{}, err
	}
	c.did(r, "reclamation was turned off", "profile", p.ID)
	return answer{to: "/profiles?did=off"}, nil
}

// setDisposable stores which kinds of build output may go, only for the host and
// tree that the person saw.
func (c *Console) setDisposable(r *http.Request) (answer, error) {
	p, err := c.profile(r)
	if err != nil {
		return answer{}, err
	}
	host, _ := p.BlastHost()
	if r.PostFormValue("host") != host || r.PostFormValue("tree") != p.Tree() {
		return answer{to: "/profiles?did=looked"}, nil
	}
	kinds, err := core.WriteDisposable(strings.Join(r.PostForm["kind"], ","))
	if err != nil {
		return answer{}, fmt.Errorf("%w: %w", ports.ErrRefused, err)
	}
	if err := c.Store.SetDisposable(r.Context(), p.ID, kinds); err != nil {
		return answer{}, err
	}
	c.did(r, "the kinds of build output that may go were set", "profile", p.ID, "kinds", kinds, "host", host, "tree", p.Tree())
	return answer{to: "/profiles?did=kinds"}, nil
}

type keptPage struct {
	Kept    []ports.Kept
	All     int // before the filter
	Held    int64
	Reason  string
	Reasons []core.Reason
	More    int // not shown
}

func (c *Console) keptList(r *http.Request) (keptPage, error) {
	all, err := c.Store.Kept(r.Context())
	page := keptPage{All: len(all), Reason: r.FormValue("reason"), Reasons: core.Reasons()}
	for _, k := range all {
		if page.Reason == "" || string(k.Result.Reason) == page.Reason || page.Reason == core.OutcomeFailed && k.Result.Outcome == core.OutcomeFailed {
			page.Kept = append(page.Kept, k)
			page.Held += k.Result.Bytes
		}
	}
	slices.SortStableFunc(page.Kept, func(a, b ports.Kept) int { return cmp.Compare(b.Result.Bytes, a.Result.Bytes) })
	return page, err
}

func (c *Console) kept(r *http.Request) (answer, error) {
	page, err := c.keptList(r)
	if n := len(page.Kept); n > mostRows {
		page.Kept, page.More = page.Kept[:mostRows], n-mostRows
	}
	return answer{page: "kept", nav: "kept", title: "Kept directories", body: page, fragment: "list"}, err
}

func (c *Console) keptCSV(r *http.Request) (answer, error) {
	page, err := c.keptList(r)
	if err != nil {
		return answer{}, err
	}
	var file bytes.Buffer
	w := csv.NewWriter(&file)
	w.Write([]string{"host", "task_dir", "outcome", "reason", "cause", "fault", "checkout", "detail", "cure", "run", "bytes", "last_judged", "attempt", "task_id", "job_id"})
	for _, k := range page.Kept {
		res := k.Result
		var what, run []string
		for _, cure := range replay.Cures(res) {
			what = append(what, cure.What)
			if cure.Run != "" {
				run = append(run, cure.Run)
			}
		}
		row := []string{place(res.Target), res.Target.TaskDir, res.Outcome, string(res.Reason), string(res.Cause), string(res.Fault), decidingCheckout(res), res.Detail,
			strings.Join(what, "; "), strings.Join(run, "; "), strconv.FormatInt(res.Bytes, 10), stamp(k.At), strconv.Itoa(res.Attempt), res.TaskID, res.JobID}
		for i := range row {
			row[i] = cell(row[i])
		}
		w.Write(row)
	}
	w.Flush()
	return answer{file: file.Bytes(), fileName: "kept.csv", fileType: "text/csv; charset=utf-8"}, w.Error()
}

func (c *Console) judgeAgain(r *http.Request) (answer, error) {
	from := r.PostFormValue("job")
	made, err := c.Store.JudgeAgain(r.Context(), from)
	if err != nil {
		return answer{}, err
	}
	c.did(r, "a kept directory is judged again", "job_id", made, "as", from)
	return answer{to: at("jobs", made) + "?did=judged"}, nil
}

type jobsPage struct {
	Jobs   []ports.Job
	State  string
	States []ports.State
	Most   int
}

func (c *Console) jobs(r *http.Request) (answer, error) {
	page := jobsPage{State: r.FormValue("state"), Most: mostRows,
		States: []ports.State{ports.Pending, ports.Running, ports.RetryWait, ports.JobFailed, ports.Succeeded, ports.Cancelled, ports.Prepared}}
	if !slices.Contains(page.States, ports.State(page.State)) {
		page.State = ""
	}
	var err error
	page.Jobs, err = c.Store.Jobs(r.Context(), ports.State(page.State), mostRows)
	return answer{page: "jobs", nav: "jobs", title: "Jobs", body: page, fragment: "list"}, err
}

type jobPage struct {
	Job       ports.Job
	Targets   []core.JobTarget
	Unread    string // why the snapshot could not be read
	Records   []ports.Filed
	CanRetry  bool
	CanCancel bool
	NextTry   time.Time
}

func canRetry(s ports.State) bool { return s == ports.JobFailed || s == ports.RetryWait }

func canCancel(s ports.State) bool {
	return s == ports.Pending || s == ports.RetryWait
}

func (c *Console) job(r *http.Request) (answer, error) {
	j, err := c.Store.Job(r.Context(), r.PathValue("id"))
	if err != nil {
		return answer{}, err
	}
	page := jobPage{Job: j, CanRetry: canRetry(j.State), CanCancel: canCancel(j.State)}
	if j.State == ports.RetryWait {
		page.NextTry = j.NextAttemptAt
	}
	snapshot, err := core.ParseJobSnapshot(j.Snapshot)
	if err != nil {
		page.Unread = err.Error()
	} else {
		page.Targets = snapshot.Targets()
	}
	page.Records, err = c.Store.RecordsOf(r.Context(), j.ID)
	return answer{page: "job", nav: "jobs", title: "Job " + plain(j.ID), body: page}, err
}

func (c *Console) retry(r *http.Request) (answer, error) {
	id := r.PathValue("id")
	due, err := c.Store.Retry(r.Context(), id)
	if err != nil {
		return answer{}, err
	}
	c.did(r, "a job was made due", "job_id", due, "as", id)
	return answer{to: at("jobs", due) + "?did=retried"}, nil
}

func (c *Console) cancel(r *http.Request) (answer, error) {
	id := r.PathValue("id")
	if err := c.Store.Cancel(r.Context(), id); err != nil {
		return answer{}, err
	}
	c.did(r, "a job was cancelled", "job_id", id)
	return answer{to: at("jobs", id) + "?did=cancel"}, nil
}

func (c *Console) recordJSON(r *http.Request) (answer, error) {
	filed, err := c.Store.Record(r.Context(), r.PathValue("id"))
	if err != nil {
		return answer{}, err
	}
	raw, err := json.MarshalIndent(filed.Record, "", "  ")
	return answer{file: append(raw, '\n'), fileName: "record.json", fileType: "application/json"}, err
}

type hostsPage struct {
	Hosts []host
	Cut   bool // older jobs were not looked at
}

func (c *Console) hosts(r *http.Request) (answer, error) {
	jobs, err := c.Store.Jobs(r.Context(), "", mostRows)
	if err != nil {
		return answer{}, err
	}
	hosts, err := hostsOf(r.Context(), c.Store, jobs)
	return answer{page: "hosts", nav: "hosts", title: "Hosts", body: hostsPage{hosts, len(jobs) == mostRows}}, err
}

func (c *Console) stopPage(*http.Request) (answer, error) {
	return answer{page: "stop", nav: "stop", title: "Stop all removals"}, nil
}

func (c *Console) stop(r *http.Request) (answer, error) {
	var on bool
	switch r.PostFormValue("stop") {
	case "on":
		on = true
	case "off":
	default:
		return answer{}, fmt.Errorf("%w: say on or off", ports.ErrRefused)
	}
	if err := c.Store.SetStopped(r.Context(), on); err != nil {
		return answer{}, err
	}
	if on {
		c.did(r, "all removals were stopped")
		return answer{to: "/stop?did=stopped"}, nil
	}
	c.did(r, "removals may go on")
	return answer{to: "/stop?did=goes-on"}, nil
}
