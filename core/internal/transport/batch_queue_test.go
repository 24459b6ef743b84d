package transport

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// sentBatches records the sizes of batches; each takes the same time.
type sentBatches struct {
	sizes chan int
	takes time.Duration
}

func (f *sentBatches) send(batch []*Command) {
	f.sizes <- len(batch)
	time.Sleep(f.takes)
}

func TestCommandsShareBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &sentBatches{sizes: make(chan int, 100), takes: StallTimeout / 2}
		l := newBatchQueue(2, f.send)
		l.submit(new(Command))
		synctest.Wait()
		l.submit(new(Command))
		synctest.Wait()
		for range MaxBatch + 10 { // all senders are busy
			l.submit(new(Command))
		}
		time.Sleep(10 * StallTimeout)
		synctest.Wait()
		for i, want := range []int{1, 1, MaxBatch, 10} {
			if got := <-f.sizes; got != want {
				t.Errorf("batch %d has %d commands, want %d", i, got, want)
			}
		}
		if len(f.sizes) != 0 || len(l.senders) != 0 {
			t.Errorf("%d more batches, %d senders left", len(f.sizes), len(l.senders))
		}
	})
}

func TestWithdrawnCommandsStay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &sentBatches{sizes: make(chan int, 100), takes: StallTimeout / 2}
		l := newBatchQueue(1, f.send)
		sent, withdrawn, last := new(Command), new(Command), new(Command)
		l.submit(sent)
		synctest.Wait()
		l.submit(withdrawn, last)
		if sent.withdraw() {
			t.Error("a command was withdrawn after it was sent")
		}
		if !withdrawn.withdraw() {
			t.Error("a queued command could not be withdrawn")
		}
		time.Sleep(StallTimeout)
		synctest.Wait()
		if a, b := <-f.sizes, <-f.sizes; a != 1 || b != 1 || len(f.sizes) != 0 {
			t.Errorf("batches of %d and %d, %d more", a, b, len(f.sizes))
		}
	})
}

// TestStalledSendersAreDropped: a batch that stalls delays what is queued behind it for a moment only.
func TestStalledSendersAreDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		f := &sentBatches{sizes: make(chan int, 100), takes: time.Minute}
		l := newBatchQueue(2, f.send)
		for range 5 {
			l.submit(new(Command))
			synctest.Wait()
		}
		<-f.sizes
		<-f.sizes
		if n := <-f.sizes; n != 3 {
			t.Errorf("the relief carries %d calls, want 3", n)
		}
		if took := time.Since(began); took > 2*StallTimeout {
			t.Errorf("relieved after %v", took)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(l.senders) != 0 || len(l.queue) != 0 {
			t.Errorf("%d senders, %d commands left", len(l.senders), len(l.queue))
		}
	})
}

// TestRenewalsHaveTheirOwnQueue: while all senders of commands are busy, a renewal is sent at once.
func TestRenewalsHaveTheirOwnQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &sentBatches{sizes: make(chan int, 100), takes: StallTimeout / 2}
		e := &Executor{Nodes: NewNodes(nil, new(Background), f.send)}
		for range maxCommandsInFlight + 5 {
			e.Nodes.only.commands.submit(new(Command))
			synctest.Wait()
		}
		if n := len(f.sizes); n != maxCommandsInFlight {
			t.Fatalf("%d batches, want %d", n, maxCommandsInFlight)
		}
		e.SubmitRenewals([]*Command{NewCommand(echoScript, []string{"k"})})
		synctest.Wait()
		if n := len(f.sizes); n != maxCommandsInFlight+1 {
			t.Error("the renewal waits behind the calls")
		}
		time.Sleep(StallTimeout)
		synctest.Wait()
	})
}

// TestClientsKeepNothingInCommon: a channel or timer of one bubble of virtual time must not be used in another, where
// the program would end. So users may test what they do with locks in bubbles, one after the other and side by side.
func TestClientsKeepNothingInCommon(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			e := NewExecutor(nil, Background{Now: func() clock.Instant { return 0 }}, nil)
			e.Nodes = NewNodes(nil, new(Background), func(batch []*Command) {
				for _, c := range batch {
					c.Reply = int64(1)
					c.deliver()
				}
			})
			if _, err := e.Do(context.Background(), echoScript, []string{"k"}); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		})
	}
}
