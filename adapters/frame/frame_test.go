package frame_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kandev/reclaim/adapters/frame"
)

// transcript is what one call prints: noise, the frame around a body, more.
func transcript(t testing.TB, mark frame.Frame, body string) string {
	out, err := exec.Command("/bin/sh", "-c", mark.Around("note='login /bin'", `"$1"`), "test", body).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func feed(t interface{ Fatalf(string, ...any) }, answer *frame.Answer, text string, cuts []int) {
	for len(text) > 0 {
		n := len(text)
		if len(cuts) > 0 {
			n, cuts = min(n, max(1, cuts[0])), cuts[1:]
		}
		if _, err := answer.Write([]byte(text[:n])); err != nil {
			t.Fatalf("%v", err)
		}
		text = text[n:]
	}
}

func TestAnAnswerIsTheSameHoweverItArrivesAndWhateverSurroundsIt(t *testing.T) {
	mark := frame.New()
	const body = "\none\n@END 0\n\n"
	whole := transcript(t, mark, "printf '%s' '"+body+"'; exit 5")
	rapid.Check(t, func(t *rapid.T) {
		noise := rapid.SampledFrom([]string{"", "\n", "motd\n", "\n@BEGIN 1\n", "\n@" + mark.Nonce() + "@BEGI", strings.Repeat("x", 100_000)})
		cuts := rapid.SliceOf(rapid.IntRange(1, 50)).Draw(t, "cuts")
		answer := mark.Answer()
		feed(t, answer, noise.Draw(t, "before")+whole+noise.Draw(t, "after"), cuts)
		got, exit, note, ok := answer.Whole()
		if got != body || exit != 5 || note != "login /bin" || !ok {
			t.Fatalf("%q %d %q %v", got, exit, note, ok)
		}
		if pid, ok := answer.Begun(); pid <= 1 || !ok {
			t.Fatalf("%d %v", pid, ok)
		}
	})
}

func TestAnAnswerCutAnywhereIsNotWhole(t *testing.T) {
	mark := frame.New()
	text := "noise" + transcript(t, mark, "echo reclaim 1 greet; echo end 0")
	for cut := range len(text) {
		answer := mark.Answer()
		feed(t, answer, text[:cut], nil)
		if body, exit, _, ok := answer.Whole(); ok {
			t.Fatalf("cut at %d of %d: %q %d", cut, len(text), body, exit)
		}
	}
}

func TestAnotherCallsFrameIsNoAnswer(t *testing.T) {
	mark, other := frame.New(), frame.New()
	if mark.Nonce() == other.Nonce() || len(mark.Nonce()) < 20 {
		t.Fatalf("%q %q", mark.Nonce(), other.Nonce())
	}
	answer := mark.Answer()
	feed(t, answer, transcript(t, other, "echo yes"), nil)
	if _, _, _, ok := answer.Whole(); ok {
		t.Fatal("it was taken for one")
	}
}

func TestAnAnswerHasACapInBothDirections(t *testing.T) {
	mark := frame.New()
	begin, end := "\n@"+mark.Nonce()+"@BEGIN 77\n", "\n@"+mark.Nonce()+"@END 0 "+strings.Repeat("n", 30_000)+"\n"
	for over := -1; over <= 1; over++ {
		answer := mark.Answer()
		_, err := answer.Write([]byte(begin + strings.Repeat("x", frame.Cap+over) + end))
		if body, _, _, ok := answer.Whole(); ok != (over <= 0) || ok && len(body) != frame.Cap+over || errors.Is(err, frame.ErrFlooded) == ok {
			t.Errorf("%+d: %d bytes, %v, %v", over, len(body), ok, err)
		}
	}
	answer := mark.Answer()
	var err error
	for n := 0; n < 200<<20 && err == nil; n += 1 << 20 {
		_, err = answer.Write(make([]byte, 1<<20))
	}
	if !errors.Is(err, frame.ErrFlooded) {
		t.Error("noise has no cap")
	}
}
