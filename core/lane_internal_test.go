package core

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// flights records the sizes of batches; each takes as long as told.
type flights struct {
	sizes chan int
	takes time.Duration
}

func (f *flights) fly(batch []*call) {
	f.sizes <- len(batch)
	time.Sleep(f.takes)
}

func TestCallsShareFlights(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &flights{sizes: make(chan int, 100), takes: stall / 2}
		l := newLane(2, f.fly)
		l.submit(new(call))
		synctest.Wait()
		l.submit(new(call))
		synctest.Wait()
		for range maxBatch + 10 { // all crews are out
			l.submit(new(call))
		}
		time.Sleep(10 * stall)
		synctest.Wait()
		for i, want := range []int{1, 1, maxBatch, 10} {
			if got := <-f.sizes; got != want {
				t.Errorf("flight %d carries %d calls, want %d", i, got, want)
			}
		}
		if len(f.sizes) != 0 || len(l.crews) != 0 {
			t.Errorf("%d more flights, %d crews left", len(f.sizes), len(l.crews))
		}
	})
}

func TestWithdrawnCallsStay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &flights{sizes: make(chan int, 100), takes: stall / 2}
		l := newLane(1, f.fly)
		sent, withdrawn, last := new(call), new(call), new(call)
		l.submit(sent)
		synctest.Wait()
		l.submit(withdrawn, last)
		if sent.withdraw() {
			t.Error("a call was withdrawn after it was sent")
		}
		if !withdrawn.withdraw() {
			t.Error("a queued call could not be withdrawn")
		}
		time.Sleep(stall)
		synctest.Wait()
		if a, b := <-f.sizes, <-f.sizes; a != 1 || b != 1 || len(f.sizes) != 0 {
			t.Errorf("flights of %d and %d, %d more", a, b, len(f.sizes))
		}
	})
}

// TestStalledCrewsAreRelieved: a flight that does not come back holds up what waits behind it for a moment only.
func TestStalledCrewsAreRelieved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		f := &flights{sizes: make(chan int, 100), takes: time.Minute}
		l := newLane(2, f.fly)
		for range 5 {
			l.submit(new(call))
			synctest.Wait()
		}
		<-f.sizes
		<-f.sizes
		if n := <-f.sizes; n != 3 {
			t.Errorf("the relief carries %d calls, want 3", n)
		}
		if took := time.Since(began); took > 2*stall {
			t.Errorf("relieved after %v", took)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(l.crews) != 0 || len(l.queue) != 0 {
			t.Errorf("%d crews, %d calls left", len(l.crews), len(l.queue))
		}
	})
}

// TestRenewalsHaveTheirOwnLane: while all crews for calls are out, a renewal leaves at once.
func TestRenewalsHaveTheirOwnLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &flights{sizes: make(chan int, 100), takes: stall / 2}
		e := &executor{nodes: newNodes(nil, f.fly)}
		for range callFlights + 5 {
			e.nodes.only.calls.submit(new(call))
			synctest.Wait()
		}
		if n := len(f.sizes); n != callFlights {
			t.Fatalf("%d flights, want %d", n, callFlights)
		}
		e.renew([]*call{newCall(renewScript, []string{"k"})})
		synctest.Wait()
		if n := len(f.sizes); n != callFlights+1 {
			t.Error("the renewal waits behind the calls")
		}
		time.Sleep(stall)
		synctest.Wait()
	})
}

// TestClientsKeepNothingInCommon: a channel or timer of one bubble of virtual time must not be used in another, where
// the program would end. So users may test what they do with locks in bubbles, one after the other and side by side.
func TestClientsKeepNothingInCommon(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			e := newExecutor(nil, func() instant { return 0 }, nil)
			e.nodes = newNodes(nil, func(batch []*call) {
				for _, c := range batch {
					c.reply = int64(1)
					c.land()
				}
			})
			if _, err := e.do(context.Background(), renewScript, []string{"k"}); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		})
	}
}
