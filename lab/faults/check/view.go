package check

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/lab/faults/history"
)

const never = int64(1) << 62

// key names a call.
type key struct {
	by   string
	call int64
}

// lease is what a history says about one grant.
type lease struct {
	key
	op       string
	strategy string
	names    []string
	shared   bool
	limit    int // of a semaphore
	permits  int
	slot     int
	token    int64
	called   int64 // when it was asked for
	from     int64 // when the grant was returned
	until    int64 // to which the holder was told that it is certain, at most
	unlocked int64 // when it, or its whole process, began to let go; never if it did not
	lost     int64 // when it was told of the loss
	why      string
}

// to is the end of the holder's belief.
func (l *lease) to() int64 { return min(l.until, l.unlocked, l.lost) }

func (l *lease) String() string {
	return fmt.Sprintf("%s #%d (%s, token %d, %s to %s)", l.by, l.call, l.strategy, l.token, clock(l.from), clock(l.to()))
}

func clock(at int64) string {
	if at == never {
		return "the end"
	}
	return fmt.Sprintf("%.6fs", time.Duration(at).Seconds())
}

// window is a fault with a beginning and an end.
type window struct {
	row      int
	name     string
	loses    string
	from, to int64
}

// request is how long a call asked for a lock: until it failed, forever if it did not.
type request struct{ from, to int64 }

// view is a history made easy to ask.
type view struct {
	topology string
	ttl      time.Duration
	events   []history.Event
	leases   []*lease // in the order of their grants
	byKey    map[key]*lease
	byName   map[string][]*lease   // in the order of their grants
	asked    map[string][]*request // for this name alone
	lined    map[string]bool       // waiters stand in a line that Redis keeps
	waiting  map[key]*request      // by the calls that ask
	faults   []*window
}

func newView(events []history.Event) *view {
	v := &view{
		events: events, byKey: make(map[key]*lease), byName: make(map[string][]*lease),
		asked: make(map[string][]*request), lined: make(map[string]bool), waiting: make(map[key]*request),
	}
	called := make(map[key]int64)
	open := make(map[string]*window)
	for _, e := range events {
		k := key{e.By, e.Call}
		switch e.Kind {
		case history.Meta:
			v.topology, v.ttl = e.Name, time.Duration(e.Until)
		case history.Fault:
			w := &window{row: e.Row, name: e.Name, loses: e.Loses, from: e.At, to: never}
			open[e.Name] = w
			v.faults = append(v.faults, w)
		case history.Heal:
			if w := open[e.Name]; w != nil {
				w.to = e.At
			}
		case history.Call:
			if acquires(e.Op) {
				called[k] = e.At
				v.ask(e)
			}
			if l := v.byKey[k]; l != nil && e.Op == "unlock" && l.unlocked == never {
				l.unlocked = e.At
			}
		case history.Return:
			v.returned(k, called[k], e)
		case history.Valid:
			v.believed(k, e.Until)
		case history.Leaving:
			v.leaving(e.By, e.At)
		case history.End:
			if l := v.byKey[k]; l != nil {
				l.lost, l.why = e.At, e.Err
				l.until = max(l.until, min(e.Until, e.At))
			}
		}
	}
	return v
}

// ask takes in who asks for which lock.
func (v *view) ask(e history.Event) {
	if len(e.Names) == 1 {
		r := &request{from: e.At, to: never}
		v.asked[e.Names[0]] = append(v.asked[e.Names[0]], r)
		v.waiting[key{e.By, e.Call}] = r
	}
	for _, name := range e.Names {
		// Of what is locked together, some members may be of any strategy.
		v.lined[name] = v.lined[name] || e.Strategy != "mutex" && e.Strategy != "redlock" && e.Strategy != "exclusive"
	}
}

// Grants returns true if the event tells that a call has got a lease.
func Grants(e history.Event) bool {
	return e.Kind == history.Return && e.Err == "" && acquires(e.Op) && e.Token > 0
}

// acquires tells the operations that bring a lease.
func acquires(op string) bool { return op == "lock" || op == "trylock" || op == "do" }

func (v *view) returned(k key, called int64, e history.Event) {
	switch {
	case e.Err != "" && acquires(e.Op):
		if r := v.waiting[k]; r != nil {
			r.to = e.At
		}
	case e.Err != "":
	case e.Op == "extend":
		v.believed(k, e.Until)
	case Grants(e) && v.byKey[k] == nil:
		l := &lease{
			key: k, op: e.Op, strategy: e.Strategy, names: e.Names, shared: e.Shared, token: e.Token,
			limit: e.Limit, permits: max(e.Permits, 1), slot: e.Slot,
			called: called, from: e.At, until: e.Until, unlocked: never, lost: never,
		}
		v.byKey[k] = l
		v.leases = append(v.leases, l)
		for _, name := range l.names {
			v.byName[name] = append(v.byName[name], l)
		}
	}
}

// leaving takes in that a process closes its client, which unlocks what nobody has unlocked.
func (v *view) leaving(by string, at int64) {
	for _, l := range v.leases {
		if l.by == by {
			l.unlocked = min(l.unlocked, at)
		}
	}
}

func (v *view) believed(k key, until int64) {
	if l := v.byKey[k]; l != nil {
		l.until = max(l.until, until)
	}
}

// excuse returns why servers may have forgotten something in that time, empty if they must not have.
func (v *view) excuse(from, to int64) string {
	for _, w := range v.faults {
		if w.loses != "" && w.from <= to && w.to >= from {
			return w.loses
		}
	}
	return ""
}

// disturbed tells whether processes were stopped or starved in that time, and could not be quick.
func (v *view) disturbed(from, to int64) bool {
	for _, w := range v.faults {
		if (w.row == 18 || w.row == 21) && w.from <= to && w.to >= from {
			return true
		}
	}
	return false
}
