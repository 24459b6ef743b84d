package cronlock

import "time"

// doubt is about a request of this replica that was not answered. It may arrive in Redis yet, and is in the way until
// it is taken back, which core does in the background. All replicas take it for a run, so it is up to its sender to ask
// again: otherwise nobody would run the tick.
type doubt struct {
	any   bool
	since time.Time // when Redis first said that somebody is in the way
}

// doubtTime is enough to take a request back once Redis answers again.
const doubtTime = 10 * time.Second

// excuses reports whether the one in the way may be that request.
func (d *doubt) excuses() bool {
	if !d.any {
		return false
	}
	if d.since.IsZero() {
		d.since = time.Now()
	}
	return time.Since(d.since) < doubtTime
}
