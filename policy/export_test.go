package policy

import "context"

// Without is the policy with some barriers replaced by a yes.
func Without(barriers ...string) (*Policy, error) {
	modules, _, err := rules()
	if err != nil {
		return nil, err
	}
	for _, barrier := range barriers {
		name := barrier + "/" + barrier + ".rego"
		if modules[name], err = parse(name, []byte("package policy."+barrier+"\npassed := true\nrefusals := set()\n")); err != nil {
			return nil, err
		}
	}
	compiled, err := compile(context.Background(), ruling, nil, modules)
	return &Policy{barriers: compiled}, err
}
