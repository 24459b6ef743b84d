package asynqlock

import "context"

// remember notes for other tasks of the key what Redis has said, if the guard fails open.
func (v *visit) remember(busy error) {
	if v.guard.failOpen {
		v.guard.memory.Refused(v.hash, busy)
	}
}

// known returns the reason why a task must not run in an outage, although its guard fails open: another task of the key runs
// in this process, had a lease when Redis last answered, or has taken effect here and is not recorded yet. It returns nil
// if none is known of. Why: asynq redelivers a deferred task within seconds, so an outage of that length would let it run
// beside the task that was in its way.
func (v *visit) known(unavailable error) error {
	switch {
	case v.guard.runsIn(v.ctx, v.hash):
		return nil
	case v.lock != nil:
		return v.guard.memory.Lock(v.hash, v.lock, unavailable)
	}
	return v.guard.memory.Record(v.hash, unavailable)
}

// runsIn reports whether ctx is that of a run of this guard and key, which is no other task.
func (g *guard) runsIn(ctx context.Context, hash string) bool {
	for r := runFrom(ctx); r != nil; r = r.around {
		if r.guard == g && r.hash == hash {
			return true
		}
	}
	return false
}
