package supervise

import (
	"sync"
	"time"
)

// now reads the clock of the host. A monotonic clock would not do, because its zero point differs between processes.
func now() instant { return instant(time.Now().UnixNano()) }

// alarmInterval bounds how late an alarm fires after a suspend, in which timers do not advance.
const alarmInterval = 250 * time.Millisecond

// alarm sends to C at a set instant, or up to alarmInterval later after a suspend.
type alarm struct {
	C <-chan struct{}

	mu    sync.Mutex
	at    instant // guarded by mu
	timer *time.Timer
	fired chan struct{}
}

// newAlarm returns an alarm that is not set. The caller must call close.
func newAlarm() (*alarm, error) {
	fired := make(chan struct{}, 1)
	a := &alarm{C: fired, at: never, fired: fired}
	a.timer = time.AfterFunc(alarmInterval, a.tick)
	return a, nil
}

func (a *alarm) tick() {
	a.mu.Lock()
	defer a.mu.Unlock()
	left := time.Duration(a.at - now())
	if left <= 0 {
		a.at, left = never, alarmInterval
		select {
		case a.fired <- struct{}{}:
		default:
		}
	}
	a.timer.Reset(min(left, alarmInterval))
}

// set makes the alarm fire at an instant, in place of the one that was set before.
func (a *alarm) set(at instant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = at
	a.timer.Reset(min(max(time.Duration(at-now()), 0), alarmInterval))
}

func (a *alarm) close() { a.timer.Stop() }
