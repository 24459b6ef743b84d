package transport

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
)

// sentBatches records the sizes of batches, and takes the same time for each.
type sentBatches struct {
	sizes chan int
	takes time.Duration
}

func (s *sentBatches) send(batch []*Command) {
	s.sizes <- len(batch)
	time.Sleep(s.takes)
}

// newQueued returns a command for whose answer nobody waits.
func newQueued() *Command { return &Command{Done: func(*Command) {}} }

// noWait is the endWait of a queue of such commands.
func noWait(*Command, bool) bool { return false }

// TestCommandsShareBatches: commands that arrive while all senders are busy are sent together. Each sender gets an equal part of them,
// but at least leastShare.
func TestCommandsShareBatches(t *testing.T) {
	t.Parallel()
	for queued, want := range map[int][]int{
		leastShare:     {1, 1, leastShare},
		4 * leastShare: {1, 1, 2*leastShare - 1, 2*leastShare + 1},
		2*MaxBatch + 3: {1, 1, 3, MaxBatch, MaxBatch},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &sentBatches{sizes: make(chan int, 100), takes: StallTimeout / 2}
			q := newBatchQueue(2, s.send, noWait)
			q.submit(newQueued())
			synctest.Wait()
			time.Sleep(s.takes / 2) // so that the senders are not free at the same moment
			q.submit(newQueued())
			synctest.Wait()
			for range queued { // all senders are busy
				q.submit(newQueued())
			}
			time.Sleep(10 * StallTimeout)
			synctest.Wait()
			var sizes []int
			for len(s.sizes) > 0 {
				sizes = append(sizes, <-s.sizes)
			}
			if slices.Sort(sizes); !slices.Equal(sizes, want) || len(q.senders) != 0 || q.inFlight != 0 {
				t.Errorf("%d commands: batches of %d, want %d; %d senders, %d commands left", queued, sizes, want, len(q.senders), q.inFlight)
			}
		})
	}
}

// TestGroupsAreNotDivided: if no batch is in flight, what is submitted together is sent together.
func TestGroupsAreNotDivided(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sentBatches{sizes: make(chan int, 100)}
		q := newBatchQueue(maxCommandsInFlight, s.send, noWait)
		group := make([]*Command, MaxBatch)
		for i := range group {
			group[i] = newQueued()
		}
		q.submit(group...)
		synctest.Wait()
		if n := <-s.sizes; n != MaxBatch || len(s.sizes) != 0 {
			t.Errorf("the first batch has %d commands, and %d more were sent", n, len(s.sizes))
		}
		time.Sleep(StallTimeout) // for the timer to stop
	})
}

// TestWithdrawnCommandsStay: a command that was withdrawn is not sent. A command that was sent cannot be withdrawn.
func TestWithdrawnCommandsStay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sentBatches{sizes: make(chan int, 100), takes: StallTimeout / 2}
		q := newBatchQueue(1, s.send, noWait)
		sent, withdrawn, last := newQueued(), newQueued(), newQueued()
		q.submit(sent)
		synctest.Wait()
		q.submit(withdrawn, last)
		if sent.withdraw() {
			t.Error("a command was withdrawn after it was sent")
		}
		if !withdrawn.withdraw() {
			t.Error("a queued command could not be withdrawn")
		}
		time.Sleep(StallTimeout)
		synctest.Wait()
		if a, b := <-s.sizes, <-s.sizes; a != 1 || b != 1 || len(s.sizes) != 0 {
			t.Errorf("batches of %d and %d, %d more", a, b, len(s.sizes))
		}
	})
}

// TestStalledSendersAreDropped: batches that stall delay the commands behind them for about StallTimeout only.
func TestStalledSendersAreDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := &sentBatches{sizes: make(chan int, 100), takes: time.Minute}
		q := newBatchQueue(2, s.send, noWait)
		for range 5 {
			q.submit(newQueued())
			synctest.Wait()
		}
		<-s.sizes
		<-s.sizes
		if n := <-s.sizes; n != 3 {
			t.Errorf("the next batch has %d commands, want 3", n)
		}
		if took := time.Since(began); took > 2*StallTimeout {
			t.Errorf("sent after %v", took)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(q.senders) != 0 || len(q.queue) != 0 {
			t.Errorf("%d senders, %d commands left", len(q.senders), len(q.queue))
		}
	})
}

// TestSendersWithoutABatchStay: a sender that a busy program has not run for longer than StallTimeout is not dropped, and sends.
func TestSendersWithoutABatchStay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sentBatches{sizes: make(chan int, 100)}
		q := newBatchQueue(1, s.send, noWait)
		late := new(sender)
		q.addLocked(late)
		q.submit(newQueued())
		time.Sleep(10 * StallTimeout)
		synctest.Wait()
		if len(s.sizes) != 0 {
			t.Error("another sender was started")
		}
		q.run(late, nil)
		if len(s.sizes) != 1 || len(q.senders) != 0 {
			t.Errorf("%d batches, %d senders left", len(s.sizes), len(q.senders))
		}
		time.Sleep(StallTimeout) // for the timer to stop
	})
}

// TestSendersInABusyProgramDoNotYield: after a yield that has taken long, senders do not yield for a hundred times as long.
func TestSendersInABusyProgramDoNotYield(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		yields := 0
		q := newBatchQueue(1, nil, nil)
		for _, takes := range []time.Duration{longYield, longYield, 2 * longYield} {
			q.letOthersRun(func() {
				yields++
				time.Sleep(takes)
			})
		}
		if yields != 3 {
			t.Errorf("%d yields, want 3: none before has taken long", yields)
		}
		yieldsIn := func(d time.Duration) (n int) {
			for began := time.Now(); time.Since(began) < d; time.Sleep(longYield) {
				q.letOthersRun(func() { n++ })
			}
			return n
		}
		rest := yieldRest * 2 * longYield // since the long yield began
		if n := yieldsIn(rest - 3*longYield); n != 0 {
			t.Errorf("%d yields while the senders should not", n)
		}
		if n := yieldsIn(rest); n < yieldRest {
			t.Errorf("%d yields after that", n)
		}
	})
}

// TestAnswerBehindTheEndOfTheWait: an answer counts that has come after the wait was over, and before its caller looked.
func TestAnswerBehindTheEndOfTheWait(t *testing.T) {
	t.Parallel()
	c := &Command{answered: make(chan bool, 2)}
	if c.hasReply() {
		t.Error("an answer before any")
	}
	c.answered <- false
	c.deliver()
	if !c.hasReply() {
		t.Error("the answer was missed")
	}
}

// TestHookThatEndsItsGoroutine: if a hook of the user's client ends the goroutine that sends, the commands of the batch fail, and those
// behind them are sent. If the function of an answer ends it, the other answers are delivered.
func TestHookThatEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := NewExecutor(nil, Background{}, nil)
		batches := 0
		q := newBatchQueue(1, func(batch []*Command) {
			if batches++; batches == 1 {
				batch[0].keys.written, batch[0].Reply = 1, int64(1)
				runtime.Goexit()
			}
		}, e.endWait)
		waited := func() *Command { return &Command{answered: make(chan bool, 2), waitUntil: -1} }
		first, second, exits, third := waited(), waited(), &Command{Done: func(*Command) { runtime.Goexit() }}, waited()
		q.submit(first, second)
		synctest.Wait()
		for c, unwritten := range map[*Command]bool{first: false, second: true} {
			if !<-c.answered || !errors.Is(c.Err, ErrPanic) || Unwritten(c.Err) != unwritten || c.Reply != nil {
				t.Errorf("%v, %v; unwritten = %v, want %v", c.Reply, c.Err, Unwritten(c.Err), unwritten)
			}
		}
		q.submit(exits, &Command{Done: func(*Command) { runtime.Goexit() }}, third)
		synctest.Wait()
		if !<-third.answered || third.Err != nil || len(q.senders) != 0 || q.counting != 0 || q.inFlight != 0 {
			t.Errorf("%v; %d senders, %d count, %d commands in flight", third.Err, len(q.senders), q.counting, q.inFlight)
		}
		time.Sleep(2 * waitBeat) // for the timer to stop
	})
}

// TestNothingFollowsAnAnswer: after its answer, a command is no longer looked at by beats. Its channel may serve another command then.
func TestNothingFollowsAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := NewExecutor(nil, Background{}, nil)
		q := newBatchQueue(1, func([]*Command) {}, e.endWait)
		answered := &Command{answered: make(chan bool, 2), waitUntil: -1}
		q.submit(answered, &Command{Done: func(*Command) { q.beat() }})
		synctest.Wait()
		if n := len(answered.answered); n != 1 || !<-answered.answered {
			t.Errorf("%d values, and the first was not that of the answer", n)
		}
	})
}

// TestRenewalsHaveTheirOwnQueue: while all senders of commands are busy, a renewal is sent at once.
func TestRenewalsHaveTheirOwnQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sentBatches{sizes: make(chan int, 100), takes: StallTimeout / 2}
		e := &Executor{Nodes: newNodes(nil, new(Background), s.send, noWait)}
		for range maxCommandsInFlight + 5 {
			e.Nodes.only.commands.submit(newQueued())
			synctest.Wait()
		}
		if n := len(s.sizes); n != maxCommandsInFlight {
			t.Fatalf("%d batches, want %d", n, maxCommandsInFlight)
		}
		renewal := NewCommand(echoScript, []string{"k"})
		renewal.Done = func(*Command) {}
		e.SubmitRenewals([]*Command{renewal})
		synctest.Wait()
		if n := len(s.sizes); n != maxCommandsInFlight+1 {
			t.Error("the renewal waits behind the commands")
		}
		time.Sleep(StallTimeout)
		synctest.Wait()
	})
}

// TestClientsKeepNothingInCommon: executors share no channel and no timer. One from a bubble of testing/synctest ends
// the program if it is used in another bubble, and users test their code in bubbles.
func TestClientsKeepNothingInCommon(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			e := NewExecutor(nil, Background{Now: func() keepalive.Instant { return 0 }}, nil)
			e.Nodes = newNodes(nil, new(Background), func(batch []*Command) {
				for _, c := range batch {
					c.Reply = int64(1)
				}
			}, e.endWait)
			if _, err := e.Do(context.Background(), echoScript, []string{"k"}); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		})
	}
}
