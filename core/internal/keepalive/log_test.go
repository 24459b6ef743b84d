package keepalive

import (
	"errors"
	"testing"
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
