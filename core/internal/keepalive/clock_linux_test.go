package keepalive

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestBoottimeClock: the clock is never ahead of CLOCK_BOOTTIME, and a goroutine never reads an earlier time than before, while others
// read it too.
func TestBoottimeClock(t *testing.T) {
	t.Parallel()
	clock := newBoottimeClock(readBoottime)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var last Instant
			for range 20_000 {
				now := clock.now()
				boot, err := readBoottime()
				if err != nil || now > boot || now < last {
					t.Errorf("the clock says %v after %v, and CLOCK_BOOTTIME %v, %v", now, last, boot, err)
					return
				}
				last = now
			}
		})
	}
	wg.Wait()
}

// TestBoottimeClockAfterASuspend: the clock has the time of a suspend as soon as it has not read the difference for differenceTTL. A
// goroutine that was paused between the readings does not take it back.
func TestBoottimeClockAfterASuspend(t *testing.T) {
	t.Parallel()
	var suspended atomic.Int64
	clock := newBoottimeClock(func() (Instant, error) {
		boot, err := readBoottime()
		return boot.Add(time.Duration(suspended.Load())), err
	})
	before := clock.now()
	for _, step := range []struct{ suspended, min time.Duration }{{time.Hour, time.Hour}, {0, time.Hour}, {2 * time.Hour, 2 * time.Hour}} {
		suspended.Store(int64(step.suspended))
		for end := time.Now().Add(differenceTTL); !time.Now().After(end); {
			clock.now() // the reading before the end of the TTL may lack the suspend
		}
		if passed := clock.now().Sub(before); passed < step.min || passed > step.min+time.Hour/2 {
			t.Errorf("%v passed after a suspend, want at least %v", passed, step.min)
		}
	}
}
