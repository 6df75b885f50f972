package core

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"
)

// whole is a transcript of an attempt from its first question to the removal.
func whole(b *testing.B) (Snapshot, Transcript) {
	s, inventory := lab(), answer(b, "clean-pushed")
	var t Transcript
	for {
		ask, more := Next(s, t).(Ask)
		if !more {
			return s, t
		}
		t = append(t, Exchange{ask.Query, good(ask.Query, inventory, NoHolder)})
	}
}

// inTurns runs both again and again in the same turn, and tells what one costs of
// the other: the ratio of the medians.
func inTurns(b *testing.B, one, other func()) {
	var a, c []time.Duration
	for b.Loop() {
		began := time.Now()
		one()
		between := time.Now()
		other()
		a, c = append(a, between.Sub(began)), append(c, time.Since(between))
	}
	slices.Sort(a)
	slices.Sort(c)
	b.ReportMetric(float64(a[len(a)/2])/float64(max(c[len(c)/2], 1)), "ratio")
	b.ReportMetric(float64(a[len(a)/2].Nanoseconds())/1e3, "us")
}

// BenchmarkNext decides over the full transcript of a removal, and reads the
// inventory in it alone: the ratio is what the rest of the decision adds.
func BenchmarkNext(b *testing.B) {
	s, t := whole(b)
	inventory := answer(b, "clean-pushed")
	b.ReportAllocs()
	inTurns(b, func() {
		if _, ok := Next(s, t).(Done); !ok {
			b.Fatal("it does not end")
		}
	}, func() { labInventory.Judge(inventory) })
}

// BenchmarkRecordParser reads a script's answer of as many records as are allowed,
// and a stored record of an attempt; the ratio is to looking at every byte once,
// as json.Valid does of the stored one.
func BenchmarkRecordParser(b *testing.B) {
	var many bytes.Buffer
	many.WriteString("reclaim 1 inventory\n")
	for i := range maxRecords - 2 {
		fmt.Fprintf(&many, "sample %d untracked =src/file%d.go\n", i%400+1, i)
	}
	fmt.Fprintf(&many, "end %d\n", maxRecords-2)
	body := many.String()
	b.Run("an answer", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		inTurns(b, func() {
			if records, err := parseRecords("inventory", body); err != nil || len(records) != maxRecords-2 {
				b.Fatal(err)
			}
		}, func() { cksum(body) })
	})
	s, t := whole(b)
	raw, err := json.Marshal(NewRecord(s, t))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("a stored record", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		inTurns(b, func() {
			if _, err := ParseRecord(raw); err != nil {
				b.Fatal(err)
			}
		}, func() { json.Valid(raw) })
	})
}
