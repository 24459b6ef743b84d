package seal

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Proving is a run of a Once with core.WithProof, as the store of its proof sees it. It is safe for concurrent use.
type Proving struct {
	// Store is the core.Proof that the user gave.
	Store any
	// Key is the key of the Once, with the prefix of its client.
	Key         string
	Fingerprint []byte
	// Attempt and Token are 0 in a run without Redis.
	Attempt  int
	Token    int64
	MaxValue int
	// Retention is how long Redis keeps the record.
	Retention time.Duration
	Logger    *slog.Logger
	// Complete ends the attempt as one that has found the effect of an earlier run, and returns the core.CompletedError. It takes
	// the *core.Committed that was found. If that is of another request, the attempt is withdrawn, and the error is
	// core.ErrFingerprintMismatch.
	Complete func(ctx context.Context, found any) error

	mu        sync.Mutex
	begun     bool // a transaction is open, or has committed, or its end is not known
	committed bool
	doubt     bool
	value     []byte
	found     error
}

// Begin returns false if a transaction of the run is open, has committed, or has ended in a way that is not known.
func (p *Proving) Begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun {
		return false
	}
	p.begun = true
	return true
}

// Rollback notes that the transaction has had no effect, so that another one may begin.
func (p *Proving) Rollback() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun = false
}

// Commit notes that the transaction of the run has committed, with a value.
func (p *Proving) Commit(value []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.committed, p.value = true, value
}

// Find notes that an earlier run has committed, with a value. The error is the core.CompletedError for that, or
// core.ErrFingerprintMismatch if that run was of another request, whose value is not for this one.
func (p *Proving) Find(value []byte, same bool, found error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun, p.committed, p.value, p.found = true, same, value, found
}

// Doubt notes that nobody knows what the transaction has done, so that the run cannot be released.
func (p *Proving) Doubt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doubt = true
}

// InDoubt reports whether [Proving.Doubt] was called. A nil Proving is not in doubt.
func (p *Proving) InDoubt() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.doubt
}

// Begun reports whether the run has a transaction that has not been rolled back. It is true for a nil Proving, of which
// no transaction is expected.
func (p *Proving) Begun() bool {
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begun
}

// Committed returns the value that this run or an earlier one of the same request has committed. found is the error of [Proving.Find]
// if it was an earlier one. A nil Proving has not committed.
func (p *Proving) Committed() (value []byte, committed bool, found error) {
	if p == nil {
		return nil, false, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.value, p.committed, p.found
}

// FoundEffect reports whether the transaction of the innermost run of ctx has found that an earlier run committed. Then
// the guard, and not the function, has the result.
func FoundEffect(ctx context.Context) bool {
	_, _, found := ProvingFrom(ctx).Committed()
	return found != nil
}

// ProvingFrom returns the innermost run of ctx as the store of its proof sees it, nil if it has none.
func ProvingFrom(ctx context.Context) *Proving {
	if run := RunFrom(ctx); run != nil {
		return run.Proving()
	}
	return nil
}

// ConvertingProof is a core.Proof that a guard has put around the user's, because its records have a form of their own.
type ConvertingProof interface {
	// Store is the proof of the user.
	Store() any
	// Convert turns a committed value into a record's.
	Convert(value []byte) []byte
}
