package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/kandev/reclaim/adapters/replay"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// Console serves the pages. Its fields must not change once Handler was called.
type Console struct {
	Store  ports.Desk
	Access Access

	// Preview judges what archiving a task would reclaim, without changing
	// anything: one record a directory, ports.ErrNotFound for a task that has none. Nil
	// leaves the page without its button.
	Preview func(ctx context.Context, taskID string) ([]core.Record, error)
	// Policy, where set, rules again over recorded facts when a record is
	// replayed.
	Policy ports.Policy
	// Metrics, where set, is served under /metrics to who may use the console.
	Metrics http.Handler
	// River, where set, is served under /river/ to who may use the console: the
	// pages of the queue that hands jobs to machines.
	River http.Handler

	Log *slog.Logger     // nil is silent
	Now func() time.Time // nil is the clock

	previews previews
}

//go:embed pages static
var files embed.FS

// policy of the pages: nothing from elsewhere, nothing inline.
const contentSecurity = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Handler is the console. Behind a proxy it must see the Host header that the
// browser sent.
func (c *Console) Handler() http.Handler {
	g := &guard{Access: c.Access, now: c.now}
	inside := http.NewServeMux()
	for pattern, page := range map[string]func(*http.Request) (answer, error){
		"GET /{$}":                       c.overview,
		"GET /profiles":                  c.profiles,
		"GET /profiles/{id}/on":          c.confirmOn,
		"POST /profiles/{id}/on":         c.switchOn,
		"POST /profiles/{id}/off":        c.switchOff,
		"POST /profiles/{id}/disposable": c.setDisposable,
		"GET /kept":                      c.kept,
		"GET /kept.csv":                  c.keptCSV,
		"POST /kept/judge":               c.judgeAgain,
		"GET /jobs":                      c.jobs,
		"GET /jobs/{id}":                 c.job,
		"POST /jobs/{id}/retry":          c.retry,
		"POST /jobs/{id}/cancel":         c.cancel,
		"GET /records/{id}":              c.record,
		"GET /records/{id}/json":         c.recordJSON,
		"GET /hosts":                     c.hosts,
		"GET /stop":                      c.stopPage,
		"POST /stop":                     c.stop,
		"GET /preview":                   c.previewForm,
		"POST /preview":                  c.preview,
		"GET /preview/{task}":            c.previewed,
		"/":                              func(*http.Request) (answer, error) { return answer{}, ports.ErrNotFound },
	} {
		inside.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { c.serve(w, r, page) })
	}
	if c.Metrics != nil {
		inside.Handle("GET /metrics", c.Metrics)
	}

	if c.River != nil {
		inside.Handle("/river/", c.River)
	}

	outside := http.NewServeMux()
	outside.HandleFunc("GET /static/{file}", static)
	outside.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	outside.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) {
		c.render(w, r, http.StatusOK, answer{page: "login", title: "Log in"})
	})
	outside.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) { c.login(w, r, g) })
	outside.HandleFunc("POST /logout", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, g.cookie(r, "", -1))
		http.Redirect(w, r, "/login", http.StatusSeeOther)
	})
	outside.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		user, ok := g.who(r)
		switch {
		case ok:
			inside.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
		case c.Access.Token != "" && r.Method == http.MethodGet && r.Header.Get("Authorization") == "" && r.URL.Path != "/metrics":
			http.Redirect(w, r, "/login", http.StatusSeeOther)
		default:
			c.render(w, r, http.StatusForbidden, answer{page: "trouble", title: "Not allowed", body: "The console does not know who is asking. Reach it under the address it listens on, with its token, or through its proxy."})
		}
	})

	return headers(bounded(http.NewCrossOriginProtection().Handler(outside)))
}

func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentSecurity)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// bounded keeps a request's body small: nothing here takes more than a form.
func bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		next.ServeHTTP(w, r)
	})
}

type userKey struct{}

func (c *Console) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

func (c *Console) log() *slog.Logger {
	if c.Log != nil {
		return c.Log
	}
	return slog.New(slog.DiscardHandler)
}

// did writes down who changed what.
func (c *Console) did(r *http.Request, what string, about ...any) {
	user, _ := r.Context().Value(userKey{}).(string)
	c.log().InfoContext(r.Context(), what, append([]any{"user", user, "from", r.RemoteAddr}, about...)...)
}

// answer is a page, a fragment of one, a place to go, or a file.
type answer struct {
	page, title string
	nav         string // the entry of the menu it belongs to
	body        any
	fragment    string // the template to send instead when htmx asks
	to          string // go there instead
	file        []byte
	fileName    string
	fileType    string
}

// whole is what the templates see.
type whole struct {
	Title, Nav, Page string
	User             string
	Token            bool // log out makes sense
	Inside           bool // the menu makes sense
	River            bool // its pages are there
	Stopped          bool
	StopUnknown      string
	Did              string
	Now              time.Time
	Body             any
}

func (c *Console) serve(w http.ResponseWriter, r *http.Request, page func(*http.Request) (answer, error)) {
	a, err := page(r)
	switch {
	case errors.Is(err, ports.ErrNotFound):
		c.render(w, r, http.StatusNotFound, answer{page: "trouble", title: "Not found", body: "There is nothing of that name here."})
	case errors.Is(err, ports.ErrRefused):
		c.render(w, r, http.StatusConflict, answer{page: "trouble", title: "Not done", body: err.Error()})
	case err != nil:
		c.log().ErrorContext(r.Context(), "the console could not answer", "path", r.URL.Path, "error", plain(err.Error()))
		c.render(w, r, http.StatusInternalServerError, answer{page: "trouble", title: "No answer", body: "It could not be looked up or done: " + err.Error()})
	case a.to != "":
		http.Redirect(w, r, a.to, http.StatusSeeOther)
	case a.fileName != "":
		w.Header().Set("Content-Type", a.fileType)
		w.Header().Set("Content-Disposition", `attachment; filename="`+a.fileName+`"`)
		w.Write(a.file)
	default:
		c.render(w, r, http.StatusOK, a)
	}
}

func (c *Console) render(w http.ResponseWriter, r *http.Request, status int, a answer) {
	user, inside := r.Context().Value(userKey{}).(string)
	data := whole{Title: a.title, Nav: a.nav, Page: a.page, User: user, Token: c.Access.Token != "", Inside: inside, River: c.River != nil,
		Did: deeds[r.URL.Query().Get("did")], Now: c.now(), Body: a.body}
	if inside {
		stopped, err := c.Store.Stopped(r.Context())
		data.Stopped = stopped
		if err != nil {
			data.StopUnknown = err.Error()
		}
	}
	name := "layout"
	if a.fragment != "" && r.Header.Get("HX-Request") == "true" {
		name = a.fragment
	}
	var page bytes.Buffer
	if err := pages[a.page].ExecuteTemplate(&page, name, data); err != nil {
		c.log().ErrorContext(r.Context(), "a page could not be made", "page", a.page, "error", plain(err.Error()))
		http.Error(w, "The page could not be made.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Add("Vary", "HX-Request")
	w.WriteHeader(status)
	w.Write(page.Bytes())
}

type entry struct{ Name, To, Says string }

var menu = []entry{{"overview", "/", "Overview"}, {"kept", "/kept", "Kept"}, {"jobs", "/jobs", "Jobs"}, {"hosts", "/hosts", "Hosts"},
	{"profiles", "/profiles", "Profiles"}, {"preview", "/preview", "Preview"}, {"stop", "/stop", "Stop"}}

// deeds are what a page may say was just done: a closed list, so that nothing
// in an address is ever shown.
var deeds = map[string]string{
	"on":      "The switch is on. It counts for directories launched from now on.",
	"off":     "The switch is off. Directories of this profile are kept.",
	"kinds":   "Saved. The kinds count for directories launched from now on.",
	"looked":  "Nothing was saved: the profile has changed since you looked. Read again what it would mean now.",
	"judged":  "A new job judges the directory again.",
	"retried": "The job is due now.",
	"cancel":  "The job was cancelled.",
	"stopped": "No removal begins any more until this is turned off.",
	"goes-on": "Removals may begin again.",
}

func (c *Console) login(w http.ResponseWriter, r *http.Request, g *guard) {
	right, tooMany := g.admit(r.PostFormValue("token"))
	switch {
	case tooMany:
		c.render(w, r, http.StatusTooManyRequests, answer{page: "login", title: "Log in", body: "Too many wrong tokens. Wait a minute."})
	case !right:
		c.did(r, "a wrong token was shown to the console")
		c.render(w, r, http.StatusForbidden, answer{page: "login", title: "Log in", body: "That is not the token."})
	default:
		http.SetCookie(w, g.cookie(r, g.seal(g.now().Add(cookieLife)), int(cookieLife/time.Second)))
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}

func (g *guard) cookie(r *http.Request, value string, age int) *http.Cookie {
	secure := r.TLS != nil || g.fromProxy(r) && r.Header.Get("X-Forwarded-Proto") == "https"
	return &http.Cookie{Name: cookieName, Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode}
}

func static(w http.ResponseWriter, r *http.Request) {
	content, err := files.ReadFile("static/" + r.PathValue("file"))
	types := map[string]string{"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml", "LICENSE": "text/plain; charset=utf-8"}
	_, kind, _ := strings.Cut(strings.Replace(r.PathValue("file"), ".min", "", 1), ".")
	if err != nil || types[kind] == "" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", types[kind])
	w.Header().Set("Cache-Control", "private, max-age=86400")
	w.Write(content)
}

// asset is the address of a static file, which changes with its content.
func asset(name string) (string, error) {
	content, err := files.ReadFile("static/" + name)
	sum := sha256.Sum256(content)
	return "/static/" + name + "?" + hex.EncodeToString(sum[:4]), err
}

// at joins the parts of an address, each escaped.
func at(parts ...string) string {
	var b strings.Builder
	for _, part := range parts {
		b.WriteString("/" + url.PathEscape(part))
	}
	return b.String()
}

// pages holds one template set a page: the layout, the shared parts, the page.
var pages = func() map[string]*template.Template {
	shared := template.Must(template.New("").Funcs(template.FuncMap{
		"shown":   func(v any) template.HTML { return shown(fmt.Sprint(v)) },
		"plain":   func(v any) string { return plain(fmt.Sprint(v)) },
		"entries": func() []entry { return menu }, "odd": odd, "asset": asset, "at": at, "bytes": replay.Size, "whenSeen": seen,
		"todo": todo, "todoOf": todoOf,
		"tries": func(j ports.Job) int { tries, _ := j.Counted(); return tries }, "held": func(j ports.Job) int { _, held := j.Counted(); return held },
		"ago": ago, "stamp": stamp,
		"reason": reasonSays, "fault": faultSays, "state": stateSays, "outcome": outcomeSays, "came": came, "several": several, "place": place, "checkout": decidingCheckout, "join": strings.Join,
	}).ParseFS(files, "pages/layout.html", "pages/parts.html"))
	all := map[string]*template.Template{}
	names, err := fs.Glob(files, "pages/*.html")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		page := strings.TrimSuffix(strings.TrimPrefix(name, "pages/"), ".html")
		if page != "layout" && page != "parts" {
			all[page] = template.Must(template.Must(shared.Clone()).ParseFS(files, name))
		}
	}
	return all
}()
