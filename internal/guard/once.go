package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Once lets a work item of each name take effect once. Make it with [NewOnce]. It is safe for concurrent use.
type Once struct {
	engine
	client *core.Client
}

// NewOnce returns a Once that keeps its records with client. The place is the one of [core.Work]. The error is about a client that
// [core.New] has not made, or options that do not go together.
func NewOnce(place string, client *core.Client, c Config) (*Once, error) {
	if client == nil || *client == (core.Client{}) {
		return nil, fmt.Errorf("%w: the client is nil or the zero Client: pass that of core.New", core.ErrInvalidOption)
	}
	if err := seal.CheckOnceOptions(c.Once...); err != nil {
		return nil, err
	}
	if c.Proof != nil && c.Proof.OnlyEffect() {
		c.FailurePolicy = core.RetryFailures // as core does: there is nothing to hold
	}
	o := &Once{newEngine(place, c, seal.FactsOf(client)), client}
	// First, so that the record is as the config says whatever the client's defaults are.
	o.Once = append([]core.OnceOption{core.WithRetention(o.Retention), core.WithFailurePolicy(o.FailurePolicy)}, o.Once...)
	return o, nil
}

// Of returns the record of a work item, for operators too. More options come last.
func (o *Once) Of(ask Ask, more ...core.OnceOption) *core.Once {
	options := slices.Grow(o.Once[:len(o.Once):len(o.Once)], len(ask.Once)+len(more)+4)
	options = append(options, ask.Once...)
	if ask.Label != "" {
		options = append(options, core.WithLabel(ask.Label))
	}
	if ask.Note != "" {
		options = append(options, core.WithNote(ask.Note))
	}
	if ask.Fingerprint != nil {
		options = append(options, core.WithFingerprint(ask.Fingerprint))
	}
	if ask.Retention != 0 {
		options = append(options, core.WithRetention(ask.Retention))
	}
	if o.Proof != nil && o.FromProof != nil {
		options = append(options, core.WithProof(converting{o.Proof, o, ask}))
	}
	return o.client.Once(ask.Name, append(options, more...)...)
}

// converting is the proof of the user, whose values become values of records of the place.
type converting struct {
	core.Proof
	guard *Once
	ask   Ask
}

// Store implements [seal.ConvertingProof].
func (c converting) Store() any { return c.Proof }

// Convert implements [seal.ConvertingProof].
func (c converting) Convert(value []byte) []byte { return c.guard.FromProof(c.ask, value) }

// Peek reads the record of a name.
func (o *Once) Peek(ctx context.Context, name string) (core.Record, error) {
	return o.Of(Ask{Name: name}).Peek(ctx)
}

// ResolveSeen resolves a record that an operator has read before, see [core.Once.Resolve]. The error is [core.ErrInvalidName] if its
// name does not begin with the prefix of the place.
func (o *Once) ResolveSeen(ctx context.Context, prefix string, seen core.Record, value []byte) error {
	if err := o.ofPlace(prefix, seen); err != nil {
		return err
	}
	return o.Of(Ask{Name: seen.Key}).Resolve(ctx, seen, value)
}

// ForgetSeen is Forget. The error is [core.ErrInvalidName] if the name of the record does not begin with the prefix of the place.
func (o *Once) ForgetSeen(ctx context.Context, prefix string, seen core.Record) error {
	if err := o.ofPlace(prefix, seen); err != nil {
		return err
	}
	_, err := o.Forget(ctx, seen)
	return err
}

// Forget deletes a record that an operator has read before, see [core.Once.Forget], and what this process knows of its name. It
// returns false if there was nothing to forget: seen has [core.StateNone], and no run in this process is unrecorded. Redis is not
// asked about such a run.
func (o *Once) Forget(ctx context.Context, seen core.Record) (bool, error) {
	none := seen.State == core.StateNone
	late, err := o.memory.Forget(seen.Key, func(late bool) error {
		if late && none {
			return nil
		}
		return o.Of(Ask{Name: seen.Key}).Forget(ctx, seen)
	})
	return late || err == nil && !none, err
}

func (o *Once) ofPlace(prefix string, r core.Record) error {
	if strings.HasPrefix(r.Key, prefix) {
		return nil
	}
	return fmt.Errorf("%w: %q is not the record of a %s: pass what Peek returned", core.ErrInvalidName, r.Key, o.place)
}

// Known returns why a work item would not run in an outage although the guard fails open: what this process knows of its name. It
// is for [Ask.Turn].
func (o *Once) Known(_ context.Context, ask Ask, unavailable error) error {
	return o.memory.Known(question{Key: ask.Name, Fingerprint: ask.Fingerprint}, unavailable)
}

// Do calls run.Call unless the name has completed before, and records how it ended. It returns the outcome after that, and
// otherwise why the item did not run: an error of core or of Turn, Around, Replay or Refuse. The outcome is nil if the item did
// not run, which is no error if Replay has returned the result of an earlier run. It has nothing but Returned if the guard
// let the item pass.
func (o *Once) Do(ctx context.Context, ask Ask, run Run) (*Outcome, error) {
	v := o.visit(ask, run)
	if ask.NoKey != nil {
		return v.keyless(ctx)
	}
	same := func(r *running) bool { return r.once != nil && r.once.client == o.client && r.ask.Name == ask.Name }
	if around := entered(ctx, same); around != nil {
		if o.FailurePolicy == core.HoldFailures {
			if err := around.holdFailures(ctx); err != nil {
				v.incident(ctx, core.IncidentUnrecorded, err)
			}
		}
		return v.pass(ctx)
	}
	v.once = o
	v.question = question{Key: ask.Name, Fingerprint: ask.Fingerprint}
	v.claim = func(ctx context.Context, wait time.Duration) (grant, error) {
		attempt, err := o.Of(ask, core.WithWait(wait)).Begin(ctx)
		if err != nil {
			return nil, err
		}
		return attemptGrant{attempt}, nil
	}
	return v.do(ctx)
}

// attemptGrant is an attempt that was granted to a run.
type attemptGrant struct{ *core.Attempt }

// Bind returns the context for the run.
func (g attemptGrant) Bind(ctx context.Context) (context.Context, context.CancelFunc) {
	return seal.AttemptOf(g.Attempt).Bind(ctx)
}

func (g attemptGrant) withdraw(ctx context.Context) error {
	return seal.AttemptOf(g.Attempt).Withdraw(ctx)
}

// end ends the attempt by the verdict of its run.
func (g attemptGrant) end(ctx context.Context, r *running, value []byte) (err error) {
	switch r.outcome.Verdict {
	case Completed:
		err = r.confirmed(ctx, g.Attempt, g.Complete(ctx, value))
	case Held:
		err = g.Hold(ctx, r.outcome.Reason)
	case Withdrawn:
		err = g.withdraw(ctx)
	default:
		err = g.Release(ctx)
	}
	if errors.Is(err, core.ErrValueTooLarge) || errors.Is(err, core.ErrNotHeld) {
		return nil // recorded without the value; the function, or Overrun, has ended the attempt itself
	}
	return err
}

const confirmInterval = 100 * time.Millisecond

// confirmed waits until a completion is recorded that Redis has not confirmed. The client retries it in the background, and
// a caller that is answered before could come again and run a second time.
func (r *running) confirmed(ctx context.Context, a *core.Attempt, err error) error {
	// Of a record that lacks only its replicas the master knows, but that is not what was asked for.
	for errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrNotReplicated) {
		record, failure := r.once.Of(r.ask).Peek(ctx)
		switch {
		case failure != nil:
		case record.Attempt > a.Number():
			return fmt.Errorf("%w: %w", core.ErrStale, err)
		case record.State == core.StateCompleted:
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(confirmInterval):
		}
	}
	return err
}

// holdFailures makes a run keep its key after a failure although its guard allows retries: a guard inside with the same name
// asks for it. The error says that Redis did not confirm that, so a crash would free the key.
func (r *running) holdFailures(ctx context.Context) error {
	if r.policy() == core.HoldFailures {
		return nil
	}
	r.holdsFailures.Store(true)
	if said, _ := r.word.Said(); said != seal.Undecided {
		return nil
	}
	attempt, ok := r.Attempt().(*core.Attempt)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.AskTimeout)
	defer cancel()
	return attempt.Declare(ctx, core.StateUnknown)
}

// policy is the failure policy of the guard, or of a guard inside with the same name that holds failures.
func (r *running) policy() core.FailurePolicy {
	if r.holdsFailures.Load() {
		return core.HoldFailures
	}
	return r.FailurePolicy
}

// decide replaces the verdict by what the function has said of its run, and Failed by what the policy makes of it.
func (r *running) decide() {
	o := r.outcome
	said, reason := r.word.Said()
	value, committed, found := r.Proving().Committed()
	switch {
	case found != nil && !committed: // by a run of another item, and the attempt is withdrawn
		o.Verdict, o.Err = Withdrawn, found
	case found != nil:
		r.handled = o.Verdict == Completed
		o.Verdict, o.Err, o.Value = Completed, nil, func() ([]byte, error) { return value, nil }
	case committed && said != seal.Held && (o.Verdict != Completed || said == seal.Released):
		// The key does not run again, whatever came after the commit.
		o.Verdict, o.Value = Completed, func() ([]byte, error) { return r.fromProof(value), nil }
	case said == seal.Completed:
		o.Verdict = Completed
	case said == seal.Released:
		o.Verdict = Released
	case said == seal.Held:
		o.Verdict = Held
		if reason != "" {
			o.Reason = reason
		}
	case o.Verdict == Failed && r.policy() == core.HoldFailures:
		o.Verdict = Held
	case o.Verdict == Failed:
		o.Verdict = Released
	}
	switch {
	case o.Verdict != Held || o.Reason != "":
	case !o.Returned:
		o.Reason = "the function did not return"
	default:
		o.Reason = "the function failed"
	}
}

// fromProof returns a committed value as it is recorded.
func (r *running) fromProof(value []byte) []byte {
	if r.FromProof == nil {
		return value
	}
	return r.FromProof(r.ask, value)
}

// remember notes the end for the time in which Redis cannot be asked. That of a run without Redis, or which Redis has not
// confirmed, refuses the key in this process until it is recorded.
func (r *running) remember(value []byte) {
	state, retention := r.outcome.State, r.Retention
	until := time.Now().Add(retention)
	if r.ask.Retention != 0 {
		retention, until = r.ask.Retention, r.began.Add(r.ask.Retention)
	}
	switch {
	case !r.FailOpen || state == core.StateNone:
		return
	case r.grant != nil && r.outcome.Unrecorded == nil:
		r.memory.Recorded(r.ask.Name, state, r.ask.Fingerprint, retention)
		return
	}
	end := end{state: state, fingerprint: r.ask.Fingerprint, note: r.ask.Note, until: until}
	if state == core.StateUnknown {
		end.reason = r.outcome.Reason
	} else {
		end.value = bytes.Clone(value)
	}
	if r.grant == nil {
		end.once = func(retention time.Duration) *core.Once {
			// Whatever window it had to begin in: it has ended.
			return r.once.Of(r.ask, core.WithRetention(retention), core.WithWindow(time.Time{}, time.Time{}))
		}
		end.failed = func(err error) { // on a goroutine where a panic would end the process
			defer r.recovered(context.Background(), r.ask.Work)
			r.incident(context.Background(), core.IncidentUnrecorded, err)
		}
	}
	r.memory.Ended(r.ask.Name, end)
}

// Attempt implements [seal.Run].
func (r *running) Attempt() any {
	if g, ok := r.grant.(attemptGrant); ok {
		return g.Attempt
	}
	return nil
}

// Proving implements [seal.Run].
func (r *running) Proving() *seal.Proving { return r.proving }

// KeyHash implements [seal.Run].
func (r *running) KeyHash() string { return r.ask.KeyHash }

// Word implements [seal.Run].
func (r *running) Word() *seal.Word { return &r.word }

// Declare implements [seal.Run].
func (r *running) Declare(ctx context.Context, d seal.Disposition) error {
	attempt, ok := r.grant.(attemptGrant)
	if !ok {
		return fmt.Errorf("%w: the run has no record so far: it began without Redis", core.ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.FinishTimeout)
	defer cancel()
	return seal.RunFrom(attempt.Context()).Declare(ctx, d)
}
