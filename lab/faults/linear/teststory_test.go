package linear_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/lab/faults/history"
	"github.com/holdfast-go/holdfast/lab/faults/linear"
	"github.com/holdfast-go/holdfast/lab/faults/worker"
)

const ms = int64(time.Millisecond)

// story is a history by hand, on one name. Times are in milliseconds. Each process has one lease at most.
type story struct{ events []history.Event }

// on begins a history on a topology.
func on(topology string) *story {
	return (&story{}).add(0, history.Event{Kind: history.Meta, Name: topology, Until: 1000 * ms})
}

func begin() *story { return on("memory") }

func (s *story) add(at int64, e history.Event) *story {
	e.At = at * ms
	if e.Kind != history.Fault && e.Kind != history.Heal {
		e.Call = 1
		if e.Names == nil {
			e.Names = []string{"n"}
		}
	}
	s.events = append(s.events, e)
	return s
}

// pair adds a call and its return, which alone has the token and what follows it.
func (s *story) pair(called, returned int64, e history.Event) *story {
	call := e
	call.Kind, call.Token, call.Until, call.Err, call.Value = history.Call, 0, 0, "", 0
	e.Kind = history.Return
	return s.add(called, call).add(returned, e)
}

// lock is a grant of a strategy that was asked for at one time, returned at the next, and is certain until the third.
func (s *story) lock(strategy, by string, called, returned, until, token int64) *story {
	return s.pair(called, returned, history.Event{
		By: by, Op: "lock", Strategy: strategy, Shared: strategy == "read", Token: token, Until: until * ms,
	})
}

// grant is a lock of a mutex.
func (s *story) grant(by string, called, returned, until, token int64) *story {
	return s.lock("mutex", by, called, returned, until, token)
}

// permit is one of n permits, the one with that slot.
func (s *story) permit(by string, called, returned, until, token int64, n, slot int) *story {
	return s.permits(by, called, returned, until, token, n, 1, slot)
}

func (s *story) permits(by string, called, returned, until, token int64, n, k, slot int) *story {
	return s.pair(called, returned, history.Event{
		By: by, Op: "lock", Strategy: "semaphore", Shared: true, Token: token, Until: until * ms, Limit: n, Permits: k, Slot: slot,
	})
}

func (s *story) unlock(by string, called, returned int64, err string) *story {
	return s.pair(called, returned, history.Event{By: by, Op: "unlock", Err: err})
}

// unlockLost is an unlock that never returns.
func (s *story) unlockLost(by string, called int64) *story {
	return s.add(called, history.Event{By: by, Op: "unlock", Kind: history.Call})
}

// lost is the end of a lease that its holder was told of.
func (s *story) lost(by string, at, until int64, why string) *story {
	return s.add(at, history.Event{By: by, Kind: history.End, Err: why, Until: until * ms})
}

func (s *story) valid(by string, at, until int64) *story {
	return s.add(at, history.Event{By: by, Kind: history.Valid, Until: until * ms})
}

// enter is a re-entry of the holder, and its end.
func (s *story) enter(by string, called, returned, token, left int64, err string) *story {
	return s.pair(called, returned, history.Event{By: by, Op: "enter", Reentry: true, Value: token}).
		pair(left, left+1, history.Event{By: by, Op: "leave", Reentry: true, Err: err})
}

func (s *story) leaving(by string, at int64) *story {
	return s.add(at, history.Event{By: by, Kind: history.Leaving})
}

func (s *story) fault(from, to int64, loses string) *story {
	return s.add(from, history.Event{Kind: history.Fault, Name: "f", Loses: loses}).
		add(to, history.Event{Kind: history.Heal, Name: "f"})
}

// leader is an answer to the question of who leads; term 0 is a vacancy.
func (s *story) leader(by string, called, returned, term int64) *story {
	err := ""
	if term == 0 {
		err = worker.Vacant
	}
	return s.pair(called, returned, history.Event{By: by, Op: "leader", Strategy: "election", Value: term, Err: err})
}

func (s *story) write(at, token int64, refused bool) *story {
	return s.add(at, history.Event{By: "a", Kind: history.Write, Token: token, Refused: refused})
}

// writeUnfenced is a write to the side of the register that accepts all.
func (s *story) writeUnfenced(at, token int64, old bool) *story {
	return s.add(at, history.Event{By: "a", Kind: history.Write, Token: token, Refused: old, Unfenced: true})
}

// check judges the story.
func (s *story) check() *linear.Report {
	slices.SortStableFunc(s.events, func(a, b history.Event) int { return cmp.Compare(a.At, b.At) })
	return linear.Check(s.events)
}

// judged are stories, and whether a model has to allow them.
type judged struct{ legal, illegal map[string]*story }

// run judges all stories. Each has one partition, of that model.
func (j judged) run(t *testing.T, model string) {
	t.Helper()
	for want, stories := range map[int]map[string]*story{0: j.legal, 1: j.illegal} {
		for name, s := range stories {
			t.Run(name, func(t *testing.T) {
				r := s.check()
				got := r.Models[model]
				if got.Partitions != 1 || got.Unknown != 0 || got.Illegal != want || len(r.Illegal) < want {
					t.Errorf("%+v, illegal %q; want %d illegal", r.Models, r.Illegal, want)
				}
			})
		}
	}
}
