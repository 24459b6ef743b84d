package asynq_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestRecordWithoutReplica: the replica is cut off while the handler runs. That the master has the record does not make it
// the one that was asked for.
func TestRecordWithoutReplica(t *testing.T) {
	t.Parallel()
	master := testkit.Start(t, testkit.Config("repl-diskless-sync", "yes"),
		testkit.Config("repl-diskless-sync-delay", "0"))
	link := master.Relay()
	testkit.Start(t, testkit.Config("replicaof", strings.Replace(link.Addr(), ":", " ", 1)))
	conn := master.Client().Conn()
	t.Cleanup(func() { _ = conn.Close() })
	testkit.Eventually(t, within, "the replica to acknowledge", func() bool {
		conn.Publish(t.Context(), "x", "y")
		return conn.Wait(t.Context(), 1, 100*time.Millisecond).Val() == 1
	})
	failures := make(chan core.Incident, 100)
	locks := clientOf(t, master.Client(), core.WithHooks(core.Hooks{
		Incident: func(_ context.Context, i core.Incident) { failures <- i },
	}))
	guard := asynqlock.Once(locks, asynqlock.ByTaskID(),
		core.WithReplicaAck(1, 300*time.Millisecond))
	t.Cleanup(link.Heal)
	testkit.Eventually(t, within, "the task to run, which the replica has to acknowledge in time", func() bool {
		return deliver(t.Context(), delivery("1"), receipt("7"), func(context.Context, *asynq.Task) error {
			link.Hold(testkit.ToServer)
			link.Hold(testkit.ToClient)
			return nil
		}, guard) == nil
	})
	select {
	case f := <-failures:
		if f.Kind != core.IncidentUnrecorded || !errors.Is(f.Err, core.ErrNotReplicated) {
			t.Errorf("told of %+v", f)
		}
	default:
		t.Error("no replica has the record, and nobody is told")
	}
}

// TestMistakesAreFailures: what no time cures is refused when the guard is made. If only the lock of a task is wrong, it burns
// retries, and is not deferred forever.
func TestMistakesAreFailures(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	late := core.WithReplicaAck(1, 20*time.Second)
	_, err := asynqlock.NewExclusive(d.locks.Mutex, asynqlock.ByTaskID(), late, core.WithTTL(10*time.Second))
	wantErrors(t, err, core.ErrInvalidOption)
	checked := false
	guard, err := asynqlock.NewExclusive(func(name string, opts ...core.LockOption) *core.Lock {
		if !checked {
			checked = true
			return d.locks.Mutex(name, opts...)
		}
		return d.locks.Semaphore(name, 0, opts...)
	}, asynqlock.ByTaskID())
	if err != nil {
		t.Fatal(err)
	}
	err = d.deliver(delivery("1"), receipt("7"), nothing, guard)
	if wantErrors(t, err, core.ErrInvalidOption); !isFailure(err) {
		t.Errorf("deferred: %v", err)
	}
}
