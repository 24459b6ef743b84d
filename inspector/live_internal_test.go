package inspector

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestPauses: a page rests twenty times as long as its read took, but never long, and less after a failure.
func TestPauses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		took   time.Duration
		failed bool
		want   time.Duration
	}{
		{time.Millisecond, false, leastInterval},
		{100 * time.Millisecond, false, 2 * time.Second},
		{250 * time.Millisecond, false, 5 * time.Second},
		{3 * time.Second, false, 5 * time.Second}, // an outage is noticed after it
		{3 * time.Second, true, failedInterval},
	} {
		if got := pauseAfter(c.took, c.failed); got != c.want {
			t.Errorf("%v, %v: pause of %v, want %v", c.took, c.failed, got, c.want)
		}
	}
}

// TestReadersEnd with their last viewer, and with close, which waits for a read that continues and lets no viewer join afterwards.
func TestReadersEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroadcaster(10)
		var reads atomic.Int32
		read := func(context.Context) event {
			reads.Add(1)
			time.Sleep(10 * time.Millisecond) // also after the end of its context
			return event{html: time.Now().String()}
		}
		_, leaveFirst, _ := b.join("a", true, read)
		_, leaveSecond, _ := b.join("a", true, read)
		time.Sleep(2 * time.Second)
		leaveFirst()
		leaveSecond()
		time.Sleep(time.Second)
		before := reads.Load()
		if time.Sleep(time.Minute); before != reads.Load() || before < 3 || before > 5 {
			t.Errorf("%d reads in two seconds, %d after them", before, reads.Load()-before)
		}
		if _, _, ok := b.join("b", true, read); !ok {
			t.Error("a viewer was turned away")
		}
		synctest.Wait()
		began := time.Now()
		if b.close(); time.Since(began) != 10*time.Millisecond {
			t.Errorf("close took %v, want the rest of a read", time.Since(began))
		}
		if _, _, ok := b.join("c", true, read); ok {
			t.Error("a viewer has joined after the end")
		}
	})
}

// TestSlowViewer gets the newest state, and keeps no other viewer waiting.
func TestSlowViewer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroadcaster(10)
		defer b.close()
		reads := 0
		slow, leave, _ := b.join("a", true, func(context.Context) event {
			reads++
			return event{html: time.Now().String()}
		})
		defer leave()
		time.Sleep(10 * leastInterval)
		synctest.Wait()
		if e := <-slow.news; e.html != time.Now().String() || reads < 10 {
			t.Errorf("%q after %d reads", e.html, reads)
		}
	})
}

// TestLateViewer of a page that is read seldom is not given an old state, which would look like a new one. It gets an old problem.
func TestLateViewer(t *testing.T) {
	t.Parallel()
	for _, problem := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBroadcaster(10)
			defer b.close()
			_, leave, _ := b.join("a", true, func(context.Context) event {
				time.Sleep(time.Second)
				return event{html: time.Now().String(), problem: problem}
			})
			defer leave()
			time.Sleep(time.Second + 2*leastInterval)
			late, leaveLate, _ := b.join("a", true, nil)
			defer leaveLate()
			if got := len(late.news) == 1; got != problem {
				t.Errorf("problem %v: the late viewer has news: %v", problem, got)
			}
			time.Sleep(mostInterval + time.Second)
			if len(late.news) != 1 {
				t.Error("the late viewer has no news of the next read")
			}
		})
	}
}
