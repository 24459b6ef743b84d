package core

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

func (f *sentBatches) send(batch []*command) {
	f.sizes <- len(batch)
	time.Sleep(f.takes)
}

func TestCommandsShareBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &sentBatches{sizes: make(chan int, 100), takes: stallTimeout / 2}
		l := newBatchQueue(2, f.send)
		l.submit(new(command))
		synctest.Wait()
		l.submit(new(command))
		synctest.Wait()
		for range maxBatch + 10 { // all senders are busy
			l.submit(new(command))
		}
		time.Sleep(10 * stallTimeout)
		synctest.Wait()
		for i, want := range []int{1, 1, maxBatch, 10} {
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
		f := &sentBatches{sizes: make(chan int, 100), takes: stallTimeout / 2}
		l := newBatchQueue(1, f.send)
		sent, withdrawn, last := new(command), new(command), new(command)
		l.submit(sent)
		synctest.Wait()
		l.submit(withdrawn, last)
		if sent.withdraw() {
			t.Error("a command was withdrawn after it was sent")
		}
		if !withdrawn.withdraw() {
			t.Error("a queued command could not be withdrawn")
		}
		time.Sleep(stallTimeout)
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
			l.submit(new(command))
			synctest.Wait()
		}
		<-f.sizes
		<-f.sizes
		if n := <-f.sizes; n != 3 {
			t.Errorf("the relief carries %d calls, want 3", n)
		}
		if took := time.Since(began); took > 2*stallTimeout {
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
		f := &sentBatches{sizes: make(chan int, 100), takes: stallTimeout / 2}
		e := &executor{nodes: newNodes(nil, f.send)}
		for range maxCommandsInFlight + 5 {
			e.nodes.only.commands.submit(new(command))
			synctest.Wait()
		}
		if n := len(f.sizes); n != maxCommandsInFlight {
			t.Fatalf("%d batches, want %d", n, maxCommandsInFlight)
		}
		e.renew([]*command{newCommand(renewScript, []string{"k"})})
		synctest.Wait()
		if n := len(f.sizes); n != maxCommandsInFlight+1 {
			t.Error("the renewal waits behind the calls")
		}
		time.Sleep(stallTimeout)
		synctest.Wait()
	})
}

// TestClientsKeepNothingInCommon: a channel or timer of one bubble of virtual time must not be used in another, where
// the program would end. So users may test what they do with locks in bubbles, one after the other and side by side.
func TestClientsKeepNothingInCommon(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			e := newExecutor(nil, func() clock.Instant { return 0 }, nil)
			e.nodes = newNodes(nil, func(batch []*command) {
				for _, c := range batch {
					c.reply = int64(1)
					c.deliver()
				}
			})
			if _, err := e.do(context.Background(), renewScript, []string{"k"}); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		})
	}
}
