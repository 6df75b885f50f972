package policy_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/kandev/reclaim/policy"
)

func TestThePolicyShownInTheREADMEIsAGoodOne(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile(`(?m)^    package operator\.\w+\n(?:    .*\n|\n)*`).FindString(string(readme))
	source := strings.ReplaceAll("\n"+block, "\n    ", "\n")
	if problems := policy.Check("README.md", []byte(source)); len(problems) > 0 || !strings.Contains(source, "retry") {
		t.Errorf("%s\n%v", source, problems)
	}
	for _, name := range []string{"answered", "terminal", "trigger", "environment", "borrowers", "claims", "at_launch", "now", "shape"} {
		if !strings.Contains(string(readme), "`"+name+"`") {
			t.Errorf("the README does not tell the refusal %s", name)
		}
	}
}
