package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Access says who may use the console. The zero value serves this machine only:
// it is refused for an address that others can reach.
type Access struct {
	// Token, where set, must be shown once: on the login page, or as a bearer
	// token by programs. At least MinToken characters.
	Token string
	// Header names the request header in which a proxy says who its user is.
	// It counts only on connections from one of Proxies.
	Header  string
	Proxies []netip.Prefix
}

// MinToken is how long a token must be.
const MinToken = 16

// Check refuses an address to listen on that the access does not guard.
func (a Access) Check(listen string) error {
	switch {
	case a.Token != "" && len(a.Token) < MinToken:
		return fmt.Errorf("the console's token has %d characters; it needs at least %d", len(a.Token), MinToken)
	case a.Header != "" && len(a.Proxies) == 0:
		return fmt.Errorf("the header %s is trusted only from a proxy whose address is given", a.Header)
	case a.Header == "" && len(a.Proxies) > 0:
		return errors.New("a trusted proxy is given, but not the header in which it names its user")
	}
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("the address to listen on: %w", err)
	}
	if !loopback(host) && a.Token == "" && a.Header == "" {
		return fmt.Errorf("%s can be reached from other machines: give a token or a trusted proxy header, or listen on 127.0.0.1", listen)
	}
	return nil
}

func loopback(host string) bool {
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && addr.Unmap().IsLoopback()
}

// guard lets through who the access allows.
type guard struct {
	Access
	now  func() time.Time
	mu   sync.Mutex
	fail []time.Time // recent wrong tokens
}

const (
	cookieName = "reclaim_console"
	cookieLife = 12 * time.Hour
)

// who names the user of a request, or says no.
func (g *guard) who(r *http.Request) (string, bool) {
	if g.Header != "" && g.fromProxy(r) {
		if user := strings.TrimSpace(r.Header.Get(g.Header)); user != "" {
			return user, true
		}
	}
	if g.Token != "" {
		if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
			return "token", same(bearer, g.Token)
		}
		cookie, err := r.Cookie(cookieName)
		return "token", err == nil && g.ours(cookie.Value)
	}
	if g.Header != "" {
		return "", false
	}
	// No guard is set up: this machine only, under one of its own names, so that
	// a page elsewhere cannot make its own name lead here.
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return "", loopback(host)
}

func (g *guard) fromProxy(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	for _, proxy := range g.Proxies {
		if proxy.Contains(peer.Addr().Unmap()) {
			return true
		}
	}
	return false
}

// same compares in a time that tells nothing, the length included.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// seal makes a cookie that says until when it counts. It needs no memory, and
// another token makes every cookie void.
func (g *guard) seal(until time.Time) string {
	stamp := strconv.FormatInt(until.Unix(), 10)
	key := sha256.Sum256([]byte("reclaim console cookie\x00" + g.Token))
	mac := hmac.New(sha256.New, key[:])
	mac.Write([]byte(stamp))
	return stamp + "." + hex.EncodeToString(mac.Sum(nil))
}

func (g *guard) ours(cookie string) bool {
	stamp, _, _ := strings.Cut(cookie, ".")
	until, err := strconv.ParseInt(stamp, 10, 64)
	return err == nil && g.now().Unix() < until && same(cookie, g.seal(time.Unix(until, 0)))
}

// admit answers a token typed on the login page. After ten wrong ones within a
// minute it answers no one for the rest of it.
func (g *guard) admit(token string) (right, tooMany bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	for len(g.fail) > 0 && now.Sub(g.fail[0]) > time.Minute {
		g.fail = g.fail[1:]
	}
	if len(g.fail) >= 10 {
		return false, true
	}
	if g.Token != "" && same(token, g.Token) {
		return true, false
	}
	g.fail = append(g.fail, now)
	return false, false
}
