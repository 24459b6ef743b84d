package core_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// TestErrorTypes: each type of error is its sentinel for errors.Is, and its text names what the caller asked for.
func TestErrorTypes(t *testing.T) {
	t.Parallel()
	record := core.Record{Key: "order:42", Attempt: 3, Reason: "bank timed out"}
	for name, test := range map[string]struct {
		err  error
		is   error
		says []string
	}{
		"not acquired":    {&core.NotAcquiredError{Name: "order:42", RetryAfter: time.Second}, core.ErrNotAcquired, []string{`"order:42"`, "1s"}},
		"in progress":     {&core.InProgressError{Key: "order:42", RetryAfter: time.Second}, core.ErrInProgress, []string{`"order:42"`, "1s"}},
		"completed":       {&core.CompletedError{Record: record}, core.ErrCompleted, []string{`"order:42"`, "attempt 3"}},
		"outcome unknown": {&core.OutcomeUnknownError{Record: record}, core.ErrOutcomeUnknown, []string{`"order:42"`, "attempt 3", `"bank timed out"`}},
		"too many keys":   {&core.TooManyKeysError{Key: "order:42", RetryAfter: time.Second}, core.ErrTooManyKeys, []string{`"order:42"`, "another record", "1s"}},
		"too many bytes":  {&core.TooManyKeysError{Key: "order:42", Bytes: true}, core.ErrTooManyKeys, []string{`"order:42"`, "bytes"}},
		"too early":       {&core.OutsideWindowError{Key: "order:42", Early: true}, core.ErrOutsideWindow, []string{`"order:42"`, "early"}},
		"too late":        {&core.OutsideWindowError{Key: "order:42"}, core.ErrOutsideWindow, []string{`"order:42"`, "late"}},
		"changed":         {&core.ChangedError{Record: core.Record{Key: "order:42", State: core.StateCompleted, Attempt: 3}}, core.ErrChanged, []string{`"order:42"`, "completed", "attempt 3"}},
		"gone":            {&core.ChangedError{Record: core.Record{Key: "order:42"}}, core.ErrChanged, []string{`"order:42"`, "none now"}},
		"not replicated":  {&core.NotReplicatedError{Acknowledged: 1, Wanted: 2}, core.ErrNotReplicated, []string{"1 of 2 replicas"}},
	} {
		if !errors.Is(test.err, test.is) || errors.Is(test.err, core.ErrClosed) {
			t.Errorf("%s: %v is not only %v", name, test.err, test.is)
		}
		for _, want := range test.says {
			if !strings.Contains(test.err.Error(), want) {
				t.Errorf("%s: %q does not say %q", name, test.err, want)
			}
		}
	}
}
