package sshhost

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/kandev/reclaim/core"
)

// Address is where one SSH server listens, and as whom to log in there.
type Address struct {
	User string // may be empty: the caller's default
	Host string // a name or an IP address, without brackets
	Port int    // 0 means 22
}

// ParseAddress reads [user@]host[:port]. The user ends at the last "@"; an IPv6
// address with a port stands in brackets; a bare one has no port. Anything that
// a shell or ssh could read as something else (spaces, a leading "-", quotes)
// is refused, not cleaned.
func ParseAddress(text string) (Address, error) {
	var address Address
	bad := func(format string, args ...any) (Address, error) {
		return Address{}, fmt.Errorf("%q is no [user@]host[:port]: "+format, append([]any{text}, args...)...)
	}
	rest := text
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		address.User, rest = rest[:at], rest[at+1:]
		if err := checkUser(address.User); err != nil {
			return bad("%v", err)
		}
	}
	port := ""
	switch {
	case strings.HasPrefix(rest, "["):
		inside, after, closed := strings.Cut(rest[1:], "]")
		if !closed {
			return bad("the bracket is not closed")
		}
		if ip, err := netip.ParseAddr(inside); err != nil || !ip.Is6() {
			return bad("only an IPv6 address stands in brackets")
		}
		address.Host = inside
		if after != "" {
			if after[0] != ':' {
				return bad("%q after the bracket", after)
			}
			port = after[1:]
			if port == "" {
				return bad("the port is empty")
			}
		}
	case strings.Count(rest, ":") == 1:
		address.Host, port, _ = strings.Cut(rest, ":")
		if port == "" {
			return bad("the port is empty")
		}
	default:
		address.Host = rest
	}
	if err := checkHost(address.Host); err != nil {
		return bad("%v", err)
	}
	if port != "" {
		number, err := strconv.Atoi(port)
		if err != nil || number < 1 || number > 65535 || strconv.Itoa(number) != port {
			return bad("the port is a number from 1 to 65535")
		}
		address.Port = number
	}
	return address, nil
}

// checkHost accepts a host name or an IP address (IPv6 with or without a zone).
func checkHost(host string) error {
	if host == "" {
		return fmt.Errorf("the host is empty")
	}
	if len(host) > 255 {
		return fmt.Errorf("the host is longer than 255 bytes")
	}
	if strings.Contains(host, ":") {
		ip, err := netip.ParseAddr(host)
		if err != nil {
			return fmt.Errorf("%q is no IPv6 address", host)
		}
		if zone := ip.Zone(); strings.ContainsFunc(zone, func(r rune) bool { return !hostRune(r) }) {
			return fmt.Errorf("the zone %q has an odd character", zone)
		}
		return nil
	}
	if host[0] == '-' {
		return fmt.Errorf("the host starts with a dash")
	}
	for _, r := range host {
		if !hostRune(r) {
			return fmt.Errorf("the host has the character %q", r)
		}
	}
	return nil
}

func hostRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '.' || r == '-' || r == '_'
}

// checkUser accepts account names; a domain account (DOMAIN\user, user@realm)
// is one.
func checkUser(user string) error {
	if user == "" {
		return fmt.Errorf("the user is empty")
	}
	if user[0] == '-' {
		return fmt.Errorf("the user starts with a dash")
	}
	for _, r := range user {
		if r <= ' ' || r == 0x7f || strings.ContainsRune("'\"`$&;|<>()*?[]{}!#:/,", r) {
			return fmt.Errorf("the user has the character %q", r)
		}
	}
	return nil
}

func (a Address) port() int {
	if a.Port == 0 {
		return 22
	}
	return a.Port
}

// dialled is the address as net.Dial takes it.
func (a Address) dialled() string { return net.JoinHostPort(a.Host, strconv.Itoa(a.port())) }

// String is [user@]host:port, as ParseAddress reads it.
func (a Address) String() string {
	if a.User == "" {
		return a.dialled()
	}
	return a.User + "@" + a.dialled()
}

// targetAddress is the address a target names.
func targetAddress(target core.Target) (Address, error) {
	host := target.Host
	if inner, is := strings.CutPrefix(host, "["); is {
		host = strings.TrimSuffix(inner, "]")
	}
	if err := checkHost(host); err != nil {
		return Address{}, err
	}
	if target.Port < 0 || target.Port > 65535 {
		return Address{}, fmt.Errorf("the port %d is not between 1 and 65535", target.Port)
	}
	if target.User != "" {
		if err := checkUser(target.User); err != nil {
			return Address{}, err
		}
	}
	return Address{User: target.User, Host: host, Port: target.Port}, nil
}
