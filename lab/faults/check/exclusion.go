package check

import (
	"slices"

	"github.com/holdfast-go/holdfast/lab/faults/history"
	"github.com/holdfast-go/holdfast/lab/faults/worker"
)

// exclusion: no two holders believe at one time that they have the same lock, unless both share it.
func (r *Report) exclusion(v *view) {
	r.Grants = len(v.leases)
	for name, leases := range v.byName {
		var active []*lease
		for _, l := range leases {
			if l.to() <= l.from {
				continue
			}
			active = slices.DeleteFunc(active, func(a *lease) bool { return a.to() <= l.from })
			for _, a := range active {
				if !a.shared || !l.shared {
					r.judge(v, a.called, l.from, "overlap", "%q is held by %v and by %v", name, a, l)
				}
			}
			active = append(active, l)
		}
	}
}

// tokens: a lease that was asked for after another one was granted has a greater token, whatever happened between. Every
// grant has one.
func (r *Report) tokens(v *view) {
	for name, granted := range v.byName {
		r.Tokens += len(granted)
		asked := slices.Clone(granted)
		slices.SortFunc(asked, func(a, b *lease) int { return int(a.called - b.called) })
		seen := make(map[int64]*lease)
		var highest *lease
		next := 0
		for _, l := range asked {
			for ; next < len(granted) && granted[next].from < l.called; next++ {
				if highest == nil || granted[next].token > highest.token {
					highest = granted[next]
				}
			}
			if highest != nil && l.token <= highest.token {
				r.violated("token: %q was granted to %v after %v", name, l, highest)
			}
			if other := seen[l.token]; other != nil {
				r.violated("token: %q has the same token twice: %v and %v", name, l, other)
			}
			seen[l.token] = l
		}
	}
	for _, e := range v.events {
		if e.Kind == history.Return && acquires(e.Op) && e.Err == "" && e.Token == 0 {
			r.violated("token: %q was granted to %s #%d without a token", e.Names, e.By, e.Call)
		}
		if l := v.byKey[key{e.By, e.Call}]; l != nil && e.Kind == history.Return && e.Op == "enter" && e.Err == "" {
			if e.Value != l.token {
				r.judge(v, l.called, e.At, "token", "entering %v again brought token %d", l, e.Value)
			}
		}
	}
}

// clockSlack is what rounding to milliseconds may add up to.
const clockSlack = 1_000_000 // ns

// belief: what a holder believes of its lease lies within what the server knows of it.
func (r *Report) belief(v *view) {
	for _, e := range v.events {
		l := v.byKey[key{e.By, e.Call}]
		if e.Kind != history.Probe || l == nil {
			continue
		}
		r.Probes++
		same := e.Value == e.Token || v.handedOver(l, e.Value)
		if same && e.Value != e.Token {
			r.HandOvers++
		}
		switch {
		case !same && e.At < min(e.Until, l.lost):
			r.judge(v, l.called, e.At, "belief", "%v believes in its lease until %s, but at %s the server knows token %d",
				l, clock(e.Until), clock(e.At), e.Value)
		case same && e.Until > e.Deadline+clockSlack:
			r.judge(v, l.called, e.At, "belief", "%v believes in its lease until %s, the server only until %s",
				l, clock(e.Until), clock(e.Deadline))
		}
	}
}

// handedOver returns true if l may have the hold of an earlier lease of its process with that token, which the server knows: both are
// of one mutex, the earlier one was let go before l was granted, and nobody else was granted the lock between them.
func (v *view) handedOver(l *lease, token int64) bool {
	if l.strategy != "mutex" || token >= l.token {
		return false
	}
	first := false
	for _, other := range v.byName[l.names[0]] {
		switch {
		case other.token < token || other.token >= l.token:
		case other.by != l.by || other.strategy != "mutex" || other.to() > l.from:
			return false
		case other.token == token:
			first = true
		}
	}
	return first
}

// losses: no server takes a lease away before its time.
func (r *Report) losses(v *view) {
	for _, l := range v.leases {
		if l.why == worker.Taken && l.lost < min(l.until, l.unlocked) {
			r.judge(v, l.called, l.lost, "loss", "%v was taken away before its end", l)
		}
	}
}
