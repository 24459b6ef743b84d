package linear

import "github.com/holdfast-go/holdfast/lab/faults/history"

const never = int64(1) << 62

// loss is a fault by which Redis may forget who holds a lock.
type loss struct {
	name     string
	from, to int64
}

// losses returns the faults that make Redis forget. One without an end lasts to the end of the history.
func losses(events []history.Event) []loss {
	var all []loss
	for _, e := range events {
		switch {
		case e.Kind == history.Fault && e.Loses != "":
			all = append(all, loss{e.Name, e.At, never})
		case e.Kind == history.Heal:
			for i := range all {
				if all[i].name == e.Name && all[i].to == never {
					all[i].to = e.At
				}
			}
		}
	}
	return all
}

// firstLoss returns when Redis may have forgotten a lease first, between its call and its end. It returns never if Redis
// must not have forgotten it.
func firstLoss(all []loss, from, to int64) int64 {
	first := never
	for _, w := range all {
		if w.from <= to && w.to >= from {
			first = min(first, max(w.from, from))
		}
	}
	return first
}
