package keepalive

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestRenewalLogDoesNotFlap: with renewals of some leases failing beside others that succeed, the log warns at the first,
// now and then with a count, and says once that all is well.
func TestRenewalLogDoesNotFlap(t *testing.T) {
	t.Parallel()
	var r Log
	now := Instant(time.Hour)
	warned, told, again := 0, 0, 0
	note := func(err error) {
		failures, ok := r.Note(now, err)
		if failures > 0 {
			warned, told = warned+1, told+failures
		}
		if ok {
			again++
		}
	}
	const seconds = 60
	for range seconds * 10 {
		now = now.Add(100 * time.Millisecond)
		note(nil)
		note(errors.New("refused"))
	}
	if warned < 2 || warned > 6 || again != 0 || told < seconds*8 || told > seconds*10 {
		t.Errorf("%d warnings of %d failures, %d times well again", warned, told, again)
	}
	note(nil)
	now = now.Add(logInterval)
	note(nil)
	note(nil)
	if again != 1 {
		t.Errorf("%d times well again", again)
	}
	before := warned
	note(errors.New("refused"))
	if warned != before+1 {
		t.Error("the first failure after that was not told")
	}
}

// TestBurstOfLosses: of many losses for one cause the first is mentioned, and later how many followed. After a quiet interval the
// next one is mentioned again. Another cause has lines of its own.
func TestBurstOfLosses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var lines []string
		began := time.Now()
		say := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, fmt.Sprintf("%v "+format, append([]any{time.Since(began)}, args...)...))
		}
		l := NewLosses(func(f Further) { say("%v: %d more, as %v", f.Cause, f.Count, f.Locks) })
		number := 0
		lose := func(n int, text string) {
			for range n {
				number++
				if cause := errors.New(text); l.Note(cause, func() string { return fmt.Sprint(number) }) {
					say("%v", cause)
				}
			}
		}
		lose(1000, "expired")
		lose(1, "taken")
		time.Sleep(burstInterval / 2)
		lose(1, "expired")
		time.Sleep(5 * time.Second)
		lose(10, "expired")
		time.Sleep(30 * time.Second)
		lose(2, "expired")
		l.Close()
		lose(1, "expired")
		time.Sleep(time.Minute)
		want := []string{
			"0s expired", "0s taken", "1s expired: 1000 more, as [2 3 4 5 6 7 8 9 10 11]",
			"11s expired: 10 more, as [1003 1004 1005 1006 1007 1008 1009 1010 1011 1012]", "35.5s expired",
			"35.5s expired: 1 more, as [1014]", "35.5s expired",
		}
		if !slices.Equal(lines, want) {
			t.Errorf("got %q, want %q", lines, want)
		}
	})
}
