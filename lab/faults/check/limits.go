package check

// limits: with each lease of a semaphore, no more permits are in use than its n, and no other lease has its slot.
//
// A lease with a smaller token was granted before. If its holder still believes in it when this one returns, Redis had
// both at once.
func (r *Report) limits(v *view) {
	for name, leases := range v.byName {
		for _, l := range leases {
			if l.limit == 0 {
				continue
			}
			r.Permits++
			inUse, from := l.permits, l.called
			for _, a := range leases {
				if a.token >= l.token || a.to() <= l.from {
					continue
				}
				inUse, from = inUse+a.permits, min(from, a.called)
				if a.limit > 0 && a.slot == l.slot && l.slot >= 0 {
					r.judge(v, a.called, l.from, "slot", "%q: slot %d is held by %v and by %v", name, l.slot, a, l)
				}
			}
			r.InUse[l.limit] = max(r.InUse[l.limit], inUse)
			if inUse > l.limit {
				r.judge(v, from, l.from, "limit", "%q: %d permits are in use with %v, which allows %d", name, inUse, l, l.limit)
			}
		}
	}
}
