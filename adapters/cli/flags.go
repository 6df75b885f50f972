package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

// misuses are what the parser says of a command line, and what we say: which flag
// or argument, what is wrong with it, and what to write instead.
var misuses = []struct {
	says *regexp.Regexp
	ours func(m []string, node *kong.Node) string
}{
	{regexp.MustCompile(`^unknown flag -=`), func([]string, *kong.Node) string {
		return "a flag of one letter is written without ="
	}},
	{regexp.MustCompile(`^unknown flag (\S+?)(?:, did you mean (.+)\?)?$`), func(m []string, _ *kong.Node) string {
		return "there is no flag " + m[1] + perhaps(m[2])
	}},
	{regexp.MustCompile(`^unexpected argument (.*?)(?:, did you mean (.+)\?)?$`), func(m []string, node *kong.Node) string {
		if node == nil || len(node.Children) > 0 {
			return "there is no command " + m[1] + perhaps(m[2])
		}
		return fmt.Sprintf("%q is one argument too many; leave it out, or quote an argument with spaces", m[1])
	}},
	{regexp.MustCompile(`^unexpected flag argument "(.*)"$`), func(m []string, _ *kong.Node) string {
		return fmt.Sprintf("a flag that takes no value was given %q; leave the value out", m[1])
	}},
	{regexp.MustCompile(`^missing flags: (.*)$`), func(m []string, _ *kong.Node) string {
		return "this is missing: " + strings.ReplaceAll(m[1], "=", " ")
	}},
	{regexp.MustCompile(`^expected (?:one of )?"[^<]`), func(_ []string, node *kong.Node) string {
		var words []string
		for node, i := node, 0; node != nil && i < len(node.Children); i++ {
			if child := node.Children[i]; !child.Hidden {
				words = append(words, child.Name)
			}
		}
		return "say what to do: " + oneOf(words)
	}},
	{regexp.MustCompile(`^expected "<([^>]*)>.*"$`), func(m []string, _ *kong.Node) string { return "the argument " + strings.ToUpper(m[1]) + " is missing" }},
	{regexp.MustCompile(`^(?s)\[?<?([^ >]+?)>?\]? must be one of (.*) but got "(.*)"$`), func(m []string, _ *kong.Node) string {
		var words []string
		for word := range strings.SplitSeq(m[2], ",") {
			if word = strings.Trim(word, `"`); word != "" {
				words = append(words, word)
			}
		}
		what := m[1]
		if !strings.HasPrefix(what, "-") {
			what = "the argument " + strings.ToUpper(what)
		}
		return fmt.Sprintf("%s is %q; write %s", what, m[3], oneOf(words))
	}},
	{regexp.MustCompile(`^(--\S+): expected a valid 64 bit int but got "(.*)"$`), func(m []string, _ *kong.Node) string {
		return fmt.Sprintf("%s is %q; write a whole number", m[1], m[2])
	}},
	{regexp.MustCompile(`^(--\S+): (?:expected \S+ value but got "EOL"|missing value).*$`), func(m []string, node *kong.Node) string {
		return m[1] + " has no value; write " + m[1] + " " + placeholder(node, m[1])
	}},
	{regexp.MustCompile(`^(--\S+): bool value must be .* but got "(.*)"$`), func(m []string, _ *kong.Node) string {
		return fmt.Sprintf("%s is %q and takes no value; write it alone, or leave it out", m[1], m[2])
	}},
	{regexp.MustCompile(`^(--\S+) and (--\S+) can't be used together$`), func(m []string, _ *kong.Node) string {
		return m[1] + " and " + m[2] + " exclude each other; write one of them"
	}},
}

// misused is a parser's error in our words.
func misused(err error) string {
	var node *kong.Node
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil {
		if node = parse.Context.Selected(); node == nil {
			node = parse.Context.Model.Node
		}
	}
	for _, misuse := range misuses {
		if m := misuse.says.FindStringSubmatch(err.Error()); m != nil {
			return misuse.ours(m, node)
		}
	}
	return err.Error()
}

func perhaps(words string) string {
	if words == "" {
		return ""
	}
	return "; did you mean " + oneOf(strings.Split(strings.TrimPrefix(words, "one of "), ", ")) + "?"
}

// oneOf lists words to choose from.
func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

func placeholder(node *kong.Node, name string) string {
	for ; node != nil; node = node.Parent {
		for _, flag := range node.Flags {
			if "--"+flag.Name == name {
				return flag.FormatPlaceHolder()
			}
		}
	}
	return "VALUE"
}
