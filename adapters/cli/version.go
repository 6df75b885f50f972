package cli

import (
	"runtime"
	"runtime/debug"

	opa "github.com/open-policy-agent/opa/v1/version"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/policy"
)

type versionCommand struct {
	JSON bool `help:"Print it as one JSON document."`
}

func (c versionCommand) Run(t *terminal) error {
	rules, err := policy.New()
	if err != nil {
		return err
	}
	v := struct {
		Version string `json:"version"`
		Core    string `json:"core"`
		Policy  string `json:"policy"`
		Record  int    `json:"record"`
		Go      string `json:"go"`
		OPA     string `json:"opa"`
	}{"(devel)", core.Digest(), rules.Digest(), core.RecordVersion, runtime.Version(), opa.Version}
	if build, is := debug.ReadBuildInfo(); is && build.Main.Version != "" {
		v.Version = build.Main.Version
	}
	if c.JSON {
		return t.json(v)
	}
	t.printf("reclaim  %s\ncore     %s (records up to version %d)\npolicy   %s\n%s, OPA %s\n", v.Version, v.Core, v.Record, v.Policy, v.Go, v.OPA)
	return nil
}
