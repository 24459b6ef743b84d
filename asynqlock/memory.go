package asynqlock

// remember notes for other tasks of the key what Redis has said, if the guard fails open.
func (v *visit) remember(busy error) {
	if v.guard.failOpen {
		v.guard.memory.Refused(v.hash, busy)
	}
}

// known returns the reason why a task must not run in an outage, although its guard fails open: another task of the key runs
// in this process, or had a lease when Redis last answered. It is a [core.CompletedError] if one has taken effect here, and is
// not recorded. It returns nil if none is known of.
//
// Why: asynq redelivers a deferred task within seconds, so an outage of that length would let it run beside the task that
// was in its way.
func (v *visit) known(unavailable error) error {
	if v.within() {
		return nil
	}
	return v.guard.memory.Known(v.hash, v.lock, unavailable)
}

// open notes a task that runs without Redis, unless another one is known of: then the error says so. end must be called when
// the task has ended.
func (v *visit) open(unavailable error) (end func(), err error) {
	if v.within() {
		return func() {}, nil
	}
	return v.guard.memory.Enter(v.hash, v.lock, unavailable)
}

// granted notes a task for which Redis has granted the key, if the guard fails open. end must be called when it has ended.
func (v *visit) granted() (end func()) {
	if !v.guard.failOpen || v.within() {
		return func() {}
	}
	return v.guard.memory.Granted(v.hash)
}

// effect notes a task that has taken effect, and that Redis may have no record of.
func (v *visit) effect() {
	if v.guard.failOpen {
		v.guard.memory.Effect(v.hash)
	}
}

// within reports whether the task comes from a run of this guard and key, which is no other task.
func (v *visit) within() bool {
	for r := runFrom(v.ctx); r != nil; r = r.around {
		if r.guard == v.guard && r.hash == v.hash {
			return true
		}
	}
	return false
}
