//go:build linux || darwin

package supervise

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// testHold is a hold of a minute.
type testHold struct{ seen func() }

func (h testHold) Context() context.Context { return context.Background() }

// ValidUntil is called after the parent has allowed the command, and before the command starts.
func (h testHold) ValidUntil() time.Time {
	h.seen()
	return time.Now().Add(time.Minute)
}

// wantInterrupted fails the test unless an error is from a signal.
func wantInterrupted(t *testing.T, err error, sig syscall.Signal) {
	t.Helper()
	var i *Interrupted
	if !errors.As(err, &i) || i.Signal != sig {
		t.Errorf("error %v, want that of %v", err, sig)
	}
}

// TestSignalBeforeCommand: a signal that arrives after the parent was asked, and before the command has a process id, keeps
// the command from starting. Otherwise it would reach no process, and the command would run on.
func TestSignalBeforeCommand(t *testing.T) {
	t.Parallel()
	mine, other, err := newLinkFiles()
	if err != nil {
		t.Fatal(err)
	}
	parent := newLink(other)
	go parent.receive(func(string, string) { parent.send(wordGo) })
	k := newSupervisor(newLink(mine), page{new(atomic.Int64), new(atomic.Int64)})
	go k.link.receive(k.handle)
	hold := testHold{func() { k.received(fromParent, syscall.SIGTERM) }}
	_, err = k.Run(hold, Command{Path: "/bin/sleep", Args: []string{"sleep", "60"}, Env: os.Environ}, Limits{KillBefore: time.Second, MaxHold: time.Millisecond})
	wantInterrupted(t, err, syscall.SIGTERM)
	k.link.flush()
	parent.flush()
	_, _ = mine.Close(), other.Close()
}

// TestSignalAtStart: a signal for the group that came before the command had started, and that is handled after that, ends
// the command too.
func TestSignalAtStart(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	k := newSupervisor(nil, page{})
	k.command, k.startedAt = cmd.Process.Pid, now().add(time.Hour) // whatever time this test takes
	k.received(fromParent, syscall.SIGTERM)
	k.received(fromSupervisor, syscall.SIGTERM)
	_ = cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
		t.Errorf("the command has ended with %v", cmd.ProcessState)
	}
}

// TestPairAtStart: only a signal that ends programs, and that the supervisor handles right after the start, is forwarded although
// it has a pair.
func TestPairAtStart(t *testing.T) {
	t.Parallel()
	just, longAgo := now().add(time.Hour), now().add(-time.Hour) // whatever time this test takes
	for _, test := range []struct {
		sig       syscall.Signal
		startedAt instant
		forwarded int
	}{
		{syscall.SIGTERM, just, 1},
		{syscall.SIGHUP, just, 1},
		{syscall.SIGUSR1, just, 0},
		{syscall.SIGTERM, longAgo, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var forwarded atomic.Int32
			k := newSupervisor(nil, page{})
			k.pairs.forward = func(syscall.Signal) { forwarded.Add(1) }
			k.command, k.startedAt = 1<<30, test.startedAt
			k.received(fromParent, test.sig)
			k.received(fromSupervisor, test.sig)
			time.Sleep(2 * supervisorSignalTimeout)
			synctest.Wait()
			if got := int(forwarded.Load()); got != test.forwarded {
				t.Errorf("%v: forwarded %d times, want %d", test.sig, got, test.forwarded)
			}
		})
	}
}

// TestSignalAfterCommand: a signal that waits for its pair while the command ends, for instance because leadership was lost,
// keeps another command from following.
func TestSignalAfterCommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newSupervisor(nil, page{})
		k.exit = func(int) {}
		k.command = 1 << 30
		k.received(fromParent, syscall.SIGTERM)
		if k.ctx.Err() != nil {
			t.Error("the context has ended while the command may act on the signal")
		}
		k.mu.Lock()
		k.command = 0
		k.mu.Unlock()
		time.Sleep(2 * parentSignalTimeout)
		synctest.Wait()
		wantInterrupted(t, context.Cause(k.ctx), syscall.SIGTERM)
	})
}

// TestSignalWhileStopping: a command that is being ended because leadership was lost must not be followed by another one.
func TestSignalWhileStopping(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newSupervisor(nil, page{})
		k.exit = func(int) {}
		k.command = 1 << 30
		k.setStopping()
		k.received(fromParent, syscall.SIGUSR1)
		if k.ctx.Err() != nil {
			t.Error("USR1 has ended the context")
		}
		k.received(fromParent, syscall.SIGTERM)
		k.received(fromSupervisor, syscall.SIGTERM) // its pair: it was for the whole group
		wantInterrupted(t, context.Cause(k.ctx), syscall.SIGTERM)
		k.received(fromSupervisor, syscall.SIGUSR1)
	})
}

// TestSignalBeforeStop: after TERM, a command that is ended because leadership was lost must not be followed by another one.
func TestSignalBeforeStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newSupervisor(nil, page{new(atomic.Int64), new(atomic.Int64)})
		k.exit = func(int) {}
		end := func(sig syscall.Signal, stopped Reason) error {
			k.command = 1 << 30
			k.received(fromParent, sig)
			k.received(fromSupervisor, sig)
			k.command = 0
			(&run{supervisor: k, outcome: Outcome{Stopped: stopped}}).finish()
			return context.Cause(k.ctx)
		}
		if err := end(syscall.SIGHUP, LeaseLost); err != nil {
			t.Error("HUP has ended the context, although it may be for the command alone")
		}
		if err := end(syscall.SIGTERM, ""); err != nil {
			t.Error("TERM has ended the context, although the command has ended by itself")
		}
		wantInterrupted(t, end(syscall.SIGTERM, LeaseLost), syscall.SIGTERM)
	})
}

// TestGiveUp: an interrupted supervisor that still waits for Redis ends, but not while a command runs, nor right after it.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newSupervisor(nil, page{new(atomic.Int64), new(atomic.Int64)})
		exited := make(chan int, 1)
		k.exit = func(status int) { exited <- status }
		k.running = true
		k.received(fromParent, syscall.SIGHUP)
		time.Sleep(2 * giveUpTimeout)
		(&run{supervisor: k}).finish()
		time.Sleep(giveUpTimeout - 1)
		synctest.Wait()
		if len(exited) > 0 {
			t.Error("ended before it could unlock")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if len(exited) == 0 || <-exited != 129 {
			t.Error("not ended with the status of the signal")
		}
	})
}
