package sshhost_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kandev/reclaim/adapters/sshhost"
	"github.com/kandev/reclaim/core"
)

func TestAnAddressIsReadStrictly(t *testing.T) {
	for text, want := range map[string]sshhost.Address{
		"host":                     {Host: "host"},
		"dev@host":                 {User: "dev", Host: "host"},
		"host:2222":                {Host: "host", Port: 2222},
		"dev@host.example:22":      {User: "dev", Host: "host.example", Port: 22},
		"me@realm@host":            {User: "me@realm", Host: "host"},
		`CORP\me@host`:             {User: `CORP\me`, Host: "host"},
		"127.0.0.1":                {Host: "127.0.0.1"},
		"::1":                      {Host: "::1"},
		"dev@::1":                  {User: "dev", Host: "::1"},
		"[::1]":                    {Host: "::1"},
		"[::1]:2222":               {Host: "::1", Port: 2222},
		"dev@[fe80::1%eth0]:65535": {User: "dev", Host: "fe80::1%eth0", Port: 65535},
		"fe80::1%eth0":             {Host: "fe80::1%eth0"},
	} {
		got, err := sshhost.ParseAddress(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v %s", text, err, diff)
		}
	}
	for _, text := range []string{"", "@host", "dev@", ":22", "host:", "host:0", "host:65536", "host:022", "host:+22", "host: 22", "host:22 ", " host", "ho st", "-oProxyCommand=id",
		"dev@-host", "-dev@host", "ho$t", "`id`", "a;b", "a|b", "a'b", "a\"b", "a/b", "a\\b", "host\n", "host\x00", "[::1", "[::1]22", "[::1]:", "[host]:22", "[127.0.0.1]:22", "::1:", "1:2:3",
		"fe80::1%et h", "dev user@host", "höst", strings.Repeat("a", 256)} {
		if got, err := sshhost.ParseAddress(text); err == nil {
			t.Errorf("%q was read as %+v", text, got)
		}
	}
}

func TestAnAddressIsReadBackFromItsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab1.-_@:[]%:")), 0, 20, -1).Draw(t, "text")
		address, err := sshhost.ParseAddress(text)
		if err != nil {
			return
		}
		again, err := sshhost.ParseAddress(address.String())
		if address.Port == 0 {
			address.Port = 22
		}
		if err != nil || again != address {
			t.Fatalf("%q: %+v, %q: %+v, %v", text, address, address.String(), again, err)
		}
	})
}

func TestAnAliasIsResolvedToValuesThatALaunchCanRecord(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "config")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("SSH_AUTH_SOCK", "")
	dialer := sshhost.New(sshhost.Options{Config: config, Home: "/home/me", User: "me"})
	const source, key = "file", "~/.ssh/id_ed25519" // what a dialer without an agent takes
	resolve := func(alias string, target core.Target) core.Target {
		t.Helper()
		got, err := dialer.Resolve(alias, target)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	check := func(want, got core.Target) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	check(core.Target{Host: "box", User: "me", IdentitySource: source, IdentityFile: key}, resolve("box", core.Target{})) // no configuration at all
	check(core.Target{Host: "h", User: "me", IdentitySource: "file", IdentityFile: "k"}, resolve("", core.Target{Host: "h", IdentityFile: "k"}))

	write(`
Host box
  HostName %h.example.com
  Port 2222
  User dev
  IdentityFile ~/.ssh/%r_key
  ProxyJump gate,second:2022
Host gate
  HostName 10.0.0.1
  User keeper
  ProxyJump outer
Host outer
  HostName 2001:db8::1
Host loop
  ProxyJump loop
Host none
  ProxyJump none
Host *
  User anybody
`)
	check(core.Target{Host: "box.example.com", Port: 2222, User: "dev", IdentitySource: "file", IdentityFile: "~/.ssh/dev_key",
		ProxyJump: "anybody@[2001:db8::1]:22,keeper@10.0.0.1:22,me@second:2022"}, resolve("box", core.Target{}))
	given := core.Target{Host: "given", Port: 22, User: "root", IdentitySource: "agent", ProxyJump: "a@b:1"}
	check(given, resolve("box", given))
	check(core.Target{Host: "unknown", User: "anybody", IdentitySource: source, IdentityFile: key}, resolve("unknown", core.Target{}))
	check(core.Target{Host: "none", User: "anybody", IdentitySource: source, IdentityFile: key}, resolve("none", core.Target{}))
	check(core.Target{Host: "h", User: "me", IdentitySource: source, IdentityFile: key, ProxyJump: "anybody@[2001:db8::1]:22,keeper@10.0.0.1:22"},
		resolve("", core.Target{Host: "h", ProxyJump: "gate"}))
	withAgent := sshhost.New(sshhost.Options{Config: config, Home: "/home/me", User: "me", AgentSocket: "/run/agent"})
	if got, err := withAgent.Resolve("", core.Target{Host: "h"}); err != nil || got.IdentitySource != "agent" {
		t.Errorf("%+v %v", got, err)
	}
	for alias, says := range map[string]string{"loop": "through itself", "-x": "alias", "a b": "alias"} {
		if got, err := dialer.Resolve(alias, core.Target{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %+v %v", alias, got, err)
		}
	}
	for text, says := range map[string]string{
		"Match exec \"test -e /x\"\n  User a\n":               "config:1: a Match with exec",
		"Host a\n  User b\nMatch host foo exec true\n User c": "config:3: a Match with exec",
		"match HOST foo EXEC true\n":                          "Match with exec",
		"Host box\n  HostName %C.x\n":                         "%C",
		"Host box\n  Port ssh\n":                              "Port",
		"Host box\n  HostName -x\n":                           "dash",
		"Host box\n  ProxyJump -x\n":                          "dash",
	} {
		write(text)
		if got, err := dialer.Resolve("box", core.Target{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %+v %v", text, got, err)
		}
	}
}
