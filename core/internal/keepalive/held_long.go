package keepalive

import "time"

// warnTime returns the first instant of a grid at which a lease has been held for that time. Why a grid: of the leases that
// are due together only one is mentioned, so that a client with very many leases does not fill the log.
func warnTime(granted Instant, held time.Duration) Instant {
	grid := Instant(max(held/60, time.Second))
	return (granted.Add(held) + grid - 1) / grid * grid
}

// warnLocked sets when HeldLong of a lease is due next: when it has been held for twice as long.
func (e *Entry[H]) warnLocked(now Instant) {
	e.validity.warnAt = warnTime(e.Granted, 2*now.Sub(e.Granted))
}

// warnOf calls HeldLong for those of the leases that are due.
func warnOf[H any](long []*Entry[H]) {
	if len(long) == 0 {
		return
	}
	first := long[0]
	for _, e := range long[1:] {
		if e.Granted < first.Granted {
			first = e
		}
	}
	first.lease.HeldLong(len(long) - 1)
}
