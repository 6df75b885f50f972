package sshhost

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/kevinburke/ssh_config"

	"github.com/kandev/reclaim/core"
)

// maxHops bounds a chain of jump hosts, and with it a configuration that names
// itself.
const maxHops = 8

// Resolve fills what target leaves open from the alias's section of the ssh
// configuration: HostName, Port, User, IdentityFile (only where no identity
// source is given) and ProxyJump; and after it, or without an alias, what Dial
// would fill from the environment: the user and where the key comes from. What
// target says stays. The result holds concrete values only, for a launch to
// record: they are not to be looked up again at clean-up, when configuration and
// environment may say something else. An alias without a section is the host's
// name.
func (d *Dialer) Resolve(alias string, target core.Target) (core.Target, error) {
	if alias != "" {
		var err error
		if target, err = d.fromConfig(alias, target); err != nil {
			return core.Target{}, err
		}
	} else if target.ProxyJump != "" {
		hops, err := d.options.hops(target.ProxyJump)
		if err != nil {
			return core.Target{}, fmt.Errorf("the jump host %q: %w", target.ProxyJump, err)
		}
		target.ProxyJump = d.options.written(hops)
	}
	if target.User == "" {
		target.User = d.options.User
	}
	if target.IdentitySource == "" {
		switch {
		case target.IdentityFile != "":
			target.IdentitySource = "file"
		case d.options.AgentSocket != "":
			target.IdentitySource = "agent"
		default:
			target.IdentitySource, target.IdentityFile = "file", "~/.ssh/id_ed25519"
		}
	}
	return target, nil
}

func (d *Dialer) fromConfig(alias string, target core.Target) (core.Target, error) {
	config, err := d.options.readConfig()
	if err != nil {
		return core.Target{}, err
	}
	if err := checkHost(alias); err != nil {
		return core.Target{}, fmt.Errorf("%q cannot be an alias: %w", alias, err)
	}
	if target.Host == "" {
		host, err := config.host(alias)
		if err != nil {
			return core.Target{}, err
		}
		target.Host = host
	}
	if target.Port == 0 {
		if target.Port, err = config.port(alias); err != nil {
			return core.Target{}, err
		}
	}
	if target.User == "" {
		if target.User, err = config.get(alias, "User"); err != nil {
			return core.Target{}, err
		}
	}
	if target.IdentitySource == "" && target.IdentityFile == "" {
		file, err := config.get(alias, "IdentityFile")
		if err != nil {
			return core.Target{}, err
		}
		if file != "" && file != "none" {
			file, err = expandTokens(file, map[byte]string{'d': d.options.Home, 'h': target.Host, 'n': alias, 'r': target.User, 'u': d.options.User})
			if err != nil {
				return core.Target{}, fmt.Errorf("ssh configuration of %s, IdentityFile: %w", alias, err)
			}
			target.IdentitySource, target.IdentityFile = "file", file
		}
	}
	if target.ProxyJump == "" {
		if target.ProxyJump, err = config.get(alias, "ProxyJump"); err != nil {
			return core.Target{}, err
		}
		if strings.EqualFold(target.ProxyJump, "none") {
			target.ProxyJump = ""
		}
	}
	hops, err := config.hops(target.ProxyJump, 0)
	if err != nil {
		return core.Target{}, fmt.Errorf("ssh configuration of %s, ProxyJump: %w", alias, err)
	}
	target.ProxyJump = d.options.written(hops)
	return target, nil
}

// written is a ProxyJump of concrete addresses.
func (o Options) written(hops []Address) string {
	texts := make([]string, len(hops))
	for i, hop := range hops {
		if hop.User == "" {
			hop.User = o.User
		}
		texts[i] = hop.String()
	}
	return strings.Join(texts, ",")
}

// hops reads a ProxyJump: hops parted by commas, nearest first. A hop with a
// user or a port is taken as it stands. One without may be an alias of the ssh
// configuration, as rows written by launches that did not resolve it have it.
func (o Options) hops(jump string) ([]Address, error) {
	if jump == "" || strings.EqualFold(jump, "none") {
		return nil, nil
	}
	var config sshConfig
	for hop := range strings.SplitSeq(jump, ",") {
		if !strings.ContainsAny(hop, "@:") {
			var err error
			if config, err = o.readConfig(); err != nil {
				return nil, err
			}
			break
		}
	}
	return config.hops(jump, 0)
}

// sshConfig is the backend user's ssh configuration; the zero value is an empty
// one.
type sshConfig struct {
	path    string
	decoded *ssh_config.Config
}

// matchExec finds a condition that runs a command. The decoder refuses some
// forms of it and silently drops the condition of others, which would then
// apply to every host.
var matchExec = regexp.MustCompile(`(?im)^[ \t]*match[ \t=].*\bexec\b`)

func (o Options) readConfig() (sshConfig, error) {
	raw, err := os.ReadFile(o.Config)
	if errors.Is(err, os.ErrNotExist) {
		return sshConfig{}, nil
	}
	if err != nil {
		return sshConfig{}, fmt.Errorf("the ssh configuration cannot be read: %w", err)
	}
	if at := matchExec.FindIndex(raw); at != nil {
		line := 1 + bytes.Count(raw[:at[0]], []byte("\n"))
		return sshConfig{}, fmt.Errorf("%s:%d: a Match with exec is not supported, because it would run a command to know a host: write the host's values out, or name hops as user@host:port", o.Config, line)
	}
	decoded, err := ssh_config.Decode(bytes.NewReader(raw))
	if err != nil {
		return sshConfig{}, fmt.Errorf("the ssh configuration %s cannot be used: %w", o.Config, err)
	}
	return sshConfig{path: o.Config, decoded: decoded}, nil
}

func (c sshConfig) get(alias, key string) (string, error) {
	if c.decoded == nil {
		return "", nil
	}
	value, err := c.decoded.Get(alias, key)
	if err != nil {
		return "", fmt.Errorf("%s, %s of %s: %w", c.path, key, alias, err)
	}
	return strings.Trim(value, `"`), nil
}

func (c sshConfig) host(alias string) (string, error) {
	host, err := c.get(alias, "HostName")
	if err != nil || host == "" {
		return alias, err
	}
	if host, err = expandTokens(host, map[byte]string{'h': alias, 'n': alias}); err != nil {
		return "", fmt.Errorf("%s, HostName of %s: %w", c.path, alias, err)
	}
	if err := checkHost(host); err != nil {
		return "", fmt.Errorf("%s, HostName of %s: %w", c.path, alias, err)
	}
	return host, nil
}

func (c sshConfig) port(alias string) (int, error) {
	text, err := c.get(alias, "Port")
	if err != nil || text == "" {
		return 0, err
	}
	port, err := strconv.Atoi(text)
	if err != nil || port < 1 || port > 65535 {
		return 0, fmt.Errorf("%s, Port of %s: %q is not a number from 1 to 65535", c.path, alias, text)
	}
	return port, nil
}

// hops resolves a ProxyJump to concrete addresses, those that a hop itself
// needs before it.
func (c sshConfig) hops(jump string, depth int) ([]Address, error) {
	if jump == "" || strings.EqualFold(jump, "none") {
		return nil, nil
	}
	if depth >= maxHops {
		return nil, fmt.Errorf("more than %d hops: a jump host is reached through itself", maxHops)
	}
	var hops []Address
	for i, text := range strings.Split(jump, ",") {
		hop, err := ParseAddress(text)
		if err != nil {
			return nil, err
		}
		if !strings.ContainsAny(text, "@:") {
			alias := hop.Host
			if hop.Host, err = c.host(alias); err != nil {
				return nil, err
			}
			if hop.Port, err = c.port(alias); err != nil {
				return nil, err
			}
			if hop.User, err = c.get(alias, "User"); err != nil {
				return nil, err
			}
			if i == 0 { // the others are reached through the one before
				before, err := c.get(alias, "ProxyJump")
				if err != nil {
					return nil, err
				}
				nearer, err := c.hops(before, depth+1)
				if err != nil {
					return nil, err
				}
				hops = append(hops, nearer...)
			}
		}
		hops = append(hops, hop)
	}
	if len(hops) > maxHops {
		return nil, fmt.Errorf("more than %d hops", maxHops)
	}
	return hops, nil
}

// expandTokens replaces the percent signs of a configuration value.
func expandTokens(value string, tokens map[byte]string) (string, error) {
	var expanded strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] != '%' {
			expanded.WriteByte(value[i])
			continue
		}
		i++
		if i == len(value) {
			return "", fmt.Errorf("%q ends in a percent sign", value)
		}
		if value[i] == '%' {
			expanded.WriteByte('%')
			continue
		}
		replacement, known := tokens[value[i]]
		if !known {
			return "", fmt.Errorf("%q has the token %%%c, which is not supported here", value, value[i])
		}
		expanded.WriteString(replacement)
	}
	return expanded.String(), nil
}
