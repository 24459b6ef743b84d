package proof_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// silentProof is a database that does not reply.
type silentProof struct {
	*coretest.Proof
	asked chan struct{}
}

func (p silentProof) Committed(ctx context.Context, _ string) (*core.Committed, error) {
	close(p.asked)
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestCloseEndsQuestions: Close does not wait for a proof that does not reply, whatever the context of the caller allows. Nothing
// runs, and the attempt is given back.
func TestCloseEndsQuestions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		policy  core.FailurePolicy
		state   core.State
		attempt int
	}{
		"later attempt":   {core.RetryFailures, core.StateNone, 1},
		"unknown outcome": {core.HoldFailures, core.StateUnknown, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb, other, _ := start(t)
			locks, err := core.New(rdb)
			coretest.WantErr(t, err, nil)
			crash(t, rdb, other.Once(key, core.WithFailurePolicy(test.policy)))
			p := silentProof{coretest.NewProof(), make(chan struct{})}
			begun, closed := make(chan error, 1), make(chan error, 1)
			go func() {
				_, err := locks.Once(key, core.WithProof(p), core.WithFailurePolicy(test.policy)).Begin(context.Background())
				begun <- err
			}()
			<-p.asked
			go func() { closed <- locks.Close() }()
			if err := coretest.Receive(t, closed); err != nil {
				t.Error(err)
			}
			err = coretest.Receive(t, begun)
			coretest.WantErr(t, err, core.ErrClosed)
			coretest.WantErr(t, err, core.ErrUndecided)
			coretest.WantState(t, other.Once(key), test.state, test.attempt)
		})
	}
}
