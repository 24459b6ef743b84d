package seal

import (
	"context"
	"sync"
)

// Disposition is what has become of a run, in the words of core's Complete, Release and Hold.
type Disposition int

const (
	Undecided Disposition = iota // neither was called: the end of the run decides
	Completed
	Released
	Held
)

// Run is one run of a Once, whichever guard began it. Core's Complete, Release and Hold call Declare of the innermost run.
type Run interface {
	// Attempt is the *core.Attempt. It is nil if the run has no record.
	Attempt() any
	// KeyHash is the same for every attempt of a key.
	KeyHash() string
	// Word is what was said of the run. It counts when the run ends.
	Word() *Word
	// Declare writes to Redis at once what a crash would make of the run.
	Declare(ctx context.Context, d Disposition) error
	// Proving is the run as the store of its proof sees it. It is nil without core.WithProof.
	Proving() *Proving
}

type runKey struct{}

// WithRun returns a context inside a run.
func WithRun(ctx context.Context, r Run) context.Context { return context.WithValue(ctx, runKey{}, r) }

// ContextKey is where a framework's own context, which lacks the values of the request's, has the context of a guarded run. The
// value is nil once the guard has ended.
const ContextKey = "github.com/holdfast-go/holdfast"

// ContextOf returns the context that has the values of a run. A *gin.Context does not pass on the values of its request, unless
// ContextWithFallback is set, but it has the values of its own store.
func ContextOf(ctx context.Context) context.Context {
	if run, ok := ctx.Value(ContextKey).(context.Context); ok {
		return run
	}
	return ctx
}

// RunFrom returns the innermost run of which ctx is the context, nil if there is none.
func RunFrom(ctx context.Context) Run {
	r, _ := ctx.Value(runKey{}).(Run)
	if r == nil {
		r, _ = ContextOf(ctx).Value(runKey{}).(Run)
	}
	return r
}

// Word is what was said of a run. The zero value is Undecided.
type Word struct {
	mu        sync.Mutex
	said      Disposition
	reason    string
	completed bool // Completed was said, whatever was said after it
}

// Set replaces what was said. The reason is for Held. It returns false and changes nothing if a completed run is to be released: it has
// taken effect, so it has not done nothing.
func (w *Word) Set(d Disposition, reason string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.completed && d == Released {
		return false
	}
	w.said, w.reason, w.completed = d, reason, w.completed || d == Completed
	return true
}

// Said returns the last of what was said.
func (w *Word) Said() (d Disposition, reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said, w.reason
}
