package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// called is what one command line came to.
type called struct {
	status         int
	stdout, stderr string
}

func call(t *testing.T, args ...string) called {
	t.Helper()
	var stdout, stderr bytes.Buffer
	home := t.TempDir()
	status := Run(context.Background(), Invocation{Args: args, Env: []string{"HOME=" + home, "USER=dev"}, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr})
	return called{status, stdout.String(), stderr.String()}
}

const wholeCase = `{"job_id":"job-7","task_id":"t-1","trigger":"archive","begun":false,
 "target":{"host":"127.0.0.1","port":1,"user":"dev","host_fingerprint":"","identity_source":"file","identity_file":"key",
           "proxy_jump":"","shell":"bash","workdir_root":"/srv/kandev","task_dir":"/srv/kandev/tasks/fix-login","enabled":true},
 "stops_succeeded":true,"hook":"none",
 "ownership":{"task_terminal":true,"opt_in_now":"on",
   "environment":{"id":"env-1","task_id":"t-1"},
   "borrowers":[{"session_id":"s-9","task_id":"t-2","state":"RUNNING","task_terminal":true}],
   "claims":[{"task_id":"t-3","host":"127.0.0.1","port":2222,"user":"dev","host_fingerprint":"",
              "task_dir":"/elsewhere/tasks/other","task_terminal":false,"stopped":false,"opted_in":true,"cleanup_open":false}],
   "error":""}}`

func TestACaseFileThatIsNotExactlyOneIsRefusedWithItsCure(t *testing.T) {
	tests := map[string]struct {
		old, new string // what is changed in the whole case
		says     []string
	}{
		"misspelled at the top":             {`"stops_succeeded"`, `"stops_suceeded"`, []string{`line 4`, `"stops_suceeded"`, `did you mean "stops_succeeded"`}},
		"misspelled in the target":          {`"enabled":true`, `"enable":true`, []string{`"target.enable"`, `did you mean "enabled"`}},
		"misspelled in the ownership":       {`"borrowers"`, `"borowers"`, []string{`line 7`, `"ownership.borowers"`, `did you mean "borrowers"`}},
		"misspelled in the environment":     {`"env-1","task_id"`, `"env-1","taskid"`, []string{`"ownership.environment.taskid"`, `did you mean "task_id"`}},
		"misspelled in a borrower":          {`"RUNNING","task_terminal"`, `"RUNNING","terminal"`, []string{`"ownership.borrowers[0].terminal"`, `task_terminal`}},
		"misspelled in a claim":             {`"cleanup_open"`, `"cleanup_opened"`, []string{`line 9`, `"ownership.claims[0].cleanup_opened"`, `did you mean "cleanup_open"`}},
		"another case of letters":           {`"enabled":true`, `"ENABLED":true`, []string{`"target.ENABLED"`, `did you mean "enabled"`}},
		"another case beside the right one": {`"enabled":true`, `"enabled":false,"Enabled":true`, []string{`"target.Enabled"`}},
		"a letter that folds to another":    {`"task_terminal":true,"opt`, `"taſk_terminal":true,"opt`, []string{`did you mean "task_terminal"`}},
		"a key twice":                       {`"enabled":true`, `"enabled":false,"enabled":true`, []string{`"target.enabled" stands twice`}},
		"a key twice at the top":            {`"hook":"none"`, `"hook":"none","hook":"ran"`, []string{`"hook" stands twice`}},
		"a key twice in a claim":            {`"stopped":false`, `"stopped":false,"stopped":true`, []string{`"ownership.claims[0].stopped" stands twice`}},
		"an unknown key":                    {`"error":""`, `"error":"","force":true`, []string{`"ownership.force"`}},
		"a port in quotes":                  {`"port":1`, `"port":"1"`, []string{`"target.port" is a string`, `must be a number`}},
		"a port with a fraction":            {`"port":1`, `"port":1.5`, []string{`"target.port" is 1.5`, `whole number`}},
		"true in quotes":                    {`"enabled":true`, `"enabled":"true"`, []string{`"target.enabled" is a string`, `true or false`}},
		"one for true":                      {`"stops_succeeded":true`, `"stops_succeeded":1`, []string{`"stops_succeeded" is a number`}},
		"null for false":                    {`"task_terminal":false,"stopped"`, `"task_terminal":null,"stopped"`, []string{`"ownership.claims[0].task_terminal" is null`}},
		"null for a list":                   {`"claims":[{`, `"claims":null,"borrowers":[{`, []string{`"ownership.claims" is null`, `a list`}},
		"an object for a list":              {`"borrowers":[{"session_id":"s-9","task_id":"t-2","state":"RUNNING","task_terminal":true}]`, `"borrowers":{}`, []string{`"ownership.borrowers" is an object`, `a list`}},
		"an unknown hook":                   {`"hook":"none"`, `"hook":"yes"`, []string{`"hook" is "yes"`, `ran, none, not_run`}},
		"an unknown opt-in":                 {`"opt_in_now":"on"`, `"opt_in_now":"true"`, []string{`"ownership.opt_in_now" is "true"`, `on, off, unknown`}},
		"an opt-in in capitals":             {`"opt_in_now":"on"`, `"opt_in_now":"ON"`, []string{`"ownership.opt_in_now" is "ON"`, `did you mean "on"`}},
		"an unknown trigger":                {`"trigger":"archive"`, `"trigger":"archived"`, []string{`"trigger" is "archived"`, `did you mean "archive"`}},
		"no ownership":                      {`"ownership":`, `"x":`, []string{`"x" is unknown`}},
		"no trigger":                        {`"trigger":"archive",`, ``, []string{`"trigger" is missing`}},
		"cut off":                           {`"error":""}}`, ``, []string{`ends in the middle`}},
		"more than one":                     {`"error":""}}`, `"error":""}} {}`, []string{`more after the end`}},
		"no JSON":                           {`{"job_id"`, `job_id`, []string{`line 1`, `not JSON`}},
		"not text":                          {`job-7`, "job-\xff", []string{`UTF-8`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if strings.Count(wholeCase, test.old) != 1 {
				t.Fatalf("%q stands %d times in the whole case", test.old, strings.Count(wholeCase, test.old))
			}
			path := filepath.Join(t.TempDir(), "case.json")
			if err := os.WriteFile(path, []byte(strings.Replace(wholeCase, test.old, test.new, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			got := call(t, "attempt", path, "--json")
			if got.status != exitUsage || got.stdout != "" || strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("exit %d, stdout %q, stderr %q; want 2, nothing, one line", got.status, got.stdout, got.stderr)
			}
			for _, part := range append(test.says, path) {
				if !strings.Contains(got.stderr, part) {
					t.Errorf("stderr is %q, without %q", got.stderr, part)
				}
			}
		})
	}
}

func TestAWholeCaseFileIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "case.json")
	if err := os.WriteFile(path, []byte(wholeCase), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := readCase(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Ownership.Claims) != 1 || !file.Target.Enabled || file.Ownership.Environment.ID != "env-1" {
		t.Errorf("read %+v", file)
	}
	if got, want := file.reached().IdentityFile, filepath.Join(filepath.Dir(path), "key"); got != want {
		t.Errorf("the identity file is %q, want %q beside the case", got, want)
	}
}
