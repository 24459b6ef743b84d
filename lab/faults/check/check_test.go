package check_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/lab/faults/check"
	"github.com/holdfast-go/holdfast/lab/faults/history"
	"github.com/holdfast-go/holdfast/lab/faults/worker"
)

const ms = int64(time.Millisecond)

// story makes a history by hand. Times are in milliseconds.
type story []history.Event

func begin() *story {
	s := &story{}
	*s = append(*s, history.Event{At: 1, Kind: history.Meta, Name: "test", Until: 1000 * ms})
	return s
}

func (s *story) add(at int64, e history.Event) *story {
	e.At = at * ms
	if e.Names == nil && e.Kind != history.Fault && e.Kind != history.Heal {
		e.Names = []string{"n"}
	}
	*s = append(*s, e)
	return s
}

// grant is a lock that was asked for at one time, granted at the next, and certain until the third.
func (s *story) grant(by string, called, from, until, token int64) *story {
	return s.lock("mutex", by, called, from, until, token)
}

func (s *story) lock(strategy, by string, called, from, until, token int64) *story {
	e := history.Event{By: by, Call: 1, Op: "lock", Strategy: strategy, Shared: strategy == "read"}
	call, back := e, e
	call.Kind, back.Kind = history.Call, history.Return
	back.Token, back.Until = token, until*ms
	return s.add(called, call).add(from, back)
}

// ask is a lock that was asked for, and not granted until the call gave up.
func (s *story) ask(by string, called, back int64) *story {
	e := history.Event{By: by, Call: 1, Op: "lock", Strategy: "mutex", Kind: history.Call}
	s.add(called, e)
	e.Kind, e.Err = history.Return, worker.Cancelled
	return s.add(back, e)
}

func (s *story) unlock(by string, called, back int64, err string) *story {
	e := history.Event{By: by, Call: 1, Op: "unlock", Kind: history.Call}
	s.add(called, e)
	e.Kind, e.Err = history.Return, err
	return s.add(back, e)
}

func (s *story) fault(from, to int64, loses string) *story {
	return s.add(from, history.Event{Kind: history.Fault, Row: 34, Name: "f", Loses: loses}).
		add(to, history.Event{Kind: history.Heal, Row: 34, Name: "f"})
}

func (s *story) write(at int64, by string, token int64, refused, unfenced bool) *story {
	return s.add(at, history.Event{
		By: by, Call: 1, Kind: history.Write, Token: token, Refused: refused, Unfenced: unfenced,
	})
}

func (s *story) step(at int64, by, op string, kind history.Kind, token int64, err, text string) *story {
	return s.add(at, history.Event{
		By: by, Call: 1, Kind: kind, Op: op, Strategy: "once held", Names: []string{"k"}, Token: token, Err: err, Text: text,
	})
}

// check judges the story after a busy time, so that it is enough to prove something.
func (s *story) check() *check.Report {
	for i := range int64(20) {
		by := string(rune('A' + i))
		e := history.Event{At: i - 100, By: by, Call: 9, Op: "lock", Names: []string{by}, Token: i + 1}
		call, back := e, e
		call.Kind, back.Kind = history.Call, history.Return
		*s = append(*s, call, back)
	}
	slices.SortStableFunc(*s, func(a, b history.Event) int { return int(a.At - b.At) })
	return check.Check(*s)
}

// judged is a history and what a checker says of it.
type judged struct {
	want  string // the beginning of the only violation; empty for none
	story *story
}

// overlaps are histories of who holds a lock when.
func overlaps() map[string]judged {
	return map[string]judged{
		"one after the other":         {"", begin().grant("a", 1, 2, 10, 1).unlock("a", 5, 6, "").grant("b", 3, 7, 12, 2)},
		"two at a time":               {"overlap", begin().grant("a", 1, 2, 10, 1).grant("b", 3, 7, 12, 2)},
		"granted without a token":     {"token", begin().grant("a", 1, 2, 10, 0)},
		"two after the first ran out": {"", begin().grant("a", 1, 2, 6, 1).grant("b", 3, 7, 12, 2)},
		"two, the first of a process that leaves": {"", begin().grant("a", 1, 2, 10, 1).
			add(5, history.Event{By: "a", Kind: history.Leaving}).grant("b", 3, 7, 12, 2)},
		"two, and another process leaves": {"overlap", begin().grant("a", 1, 2, 10, 1).
			add(5, history.Event{By: "c", Kind: history.Leaving}).grant("b", 3, 7, 12, 2)},
		"two, and a fault excuses them": {"", begin().grant("a", 1, 2, 10, 1).fault(4, 5, "FLUSHALL").grant("b", 5, 7, 12, 2)},
		"two, after the fault": {"overlap", begin().fault(1, 2, "FLUSHALL").
			grant("a", 3, 4, 10, 1).grant("b", 5, 7, 12, 2)},
		"two, and a fault that loses nothing": {"overlap", begin().grant("a", 1, 2, 10, 1).fault(4, 5, "").
			grant("b", 5, 7, 12, 2)},
		"two readers":         {"", begin().lock("read", "a", 1, 2, 10, 1).lock("read", "b", 3, 4, 10, 2)},
		"a reader and writer": {"overlap", begin().lock("read", "a", 1, 2, 10, 1).lock("write", "b", 3, 4, 10, 2)},
	}
}

// permit is permits of a semaphore that were asked for at one time, granted at the next, and certain until the third.
func (s *story) permit(by string, called, from, until, token int64, limit, permits, slot int) *story {
	e := history.Event{By: by, Call: 1, Op: "lock", Strategy: "semaphore", Shared: true, Limit: limit, Permits: permits, Slot: slot}
	call, back := e, e
	call.Kind, back.Kind = history.Call, history.Return
	back.Token, back.Until = token, until*ms
	return s.add(called, call).add(from, back)
}

// limits are histories of semaphores.
func limits() map[string]judged {
	return map[string]judged{
		"two of two": {"", begin().permit("a", 1, 2, 9, 1, 2, 1, 0).permit("b", 1, 3, 9, 2, 2, 1, 1)},
		"three of two": {"limit", begin().permit("a", 1, 2, 9, 1, 2, 1, 0).permit("b", 1, 3, 9, 2, 2, 1, 1).
			permit("c", 1, 4, 9, 3, 2, 1, 2)},
		"three of two, after the first ended": {"", begin().permit("a", 1, 2, 3, 1, 2, 1, 0).permit("b", 1, 3, 9, 2, 2, 1, 1).
			permit("c", 1, 4, 9, 3, 2, 1, 0)},
		"three, the last of whom allows three": {"", begin().permit("a", 1, 2, 9, 1, 2, 1, 0).
			permit("b", 1, 3, 9, 2, 2, 1, 1).permit("c", 1, 4, 9, 3, 3, 1, 2)},
		"three, of whom the first allows two and is told last": {"", begin().permit("b", 1, 3, 9, 2, 2, 1, 1).
			permit("c", 1, 4, 9, 3, 3, 1, 2).permit("a", 1, 5, 9, 1, 2, 1, 0)},
		"two permits and one of two": {"limit", begin().permit("a", 1, 2, 9, 1, 2, 2, 0).permit("b", 1, 3, 9, 2, 2, 1, 2)},
		"a reader and two of two": {"limit", begin().lock("read", "r", 1, 2, 9, 1).permit("a", 1, 3, 9, 2, 2, 1, 0).
			permit("b", 1, 4, 9, 3, 2, 1, 1)},
		"one slot twice":              {"slot", begin().permit("a", 1, 2, 9, 1, 2, 1, 0).permit("b", 1, 3, 9, 2, 2, 1, 0)},
		"a slot that is not known":    {"", begin().permit("a", 1, 2, 9, 1, 2, 1, -1).permit("b", 1, 3, 9, 2, 2, 1, -1)},
		"three of two, after a fault": {"", begin().permit("a", 1, 2, 9, 1, 1, 1, 0).fault(2, 3, "FLUSHALL").permit("b", 2, 4, 9, 2, 1, 1, 1)},
	}
}

// tokenOrders are histories of the tokens of grants.
func tokenOrders() map[string]judged {
	return map[string]judged{
		"a token that falls": {"token", begin().grant("a", 1, 2, 3, 5).grant("b", 4, 5, 6, 4).
			add(9, history.Event{Kind: history.Fault, Name: "x", Loses: "asynchronous failover"})},
		"a token twice, in requests side by side": {"token", begin().lock("read", "a", 1, 4, 5, 5).
			lock("read", "b", 2, 3, 5, 5)},
		"a token that falls, excused": {"token", begin().grant("a", 1, 2, 3, 5).fault(3, 4, "asynchronous failover").
			grant("b", 5, 6, 7, 4)},
		"another token on entering again": {"token", begin().grant("a", 1, 2, 9, 5).add(3, history.Event{
			By: "a", Call: 1, Kind: history.Return, Op: "enter", Reentry: true, Token: 5, Value: 6,
		})},
	}
}

// beliefs are histories of what holders believe of their leases.
func beliefs() map[string]judged {
	return map[string]judged{
		"belief within": {"", begin().grant("a", 1, 2, 9, 5).add(4, history.Event{
			By: "a", Call: 1, Kind: history.Probe, Token: 5, Value: 5, Until: 9 * ms, Deadline: 9 * ms,
		})},
		"belief beyond the server's": {"belief", begin().grant("a", 1, 2, 9, 5).add(4, history.Event{
			By: "a", Call: 1, Kind: history.Probe, Token: 5, Value: 5, Until: 12 * ms, Deadline: 9 * ms,
		})},
		"belief in what another one has": {"belief", begin().grant("a", 1, 2, 9, 5).add(4, history.Event{
			By: "a", Call: 1, Kind: history.Probe, Token: 5, Value: 6, Until: 9 * ms,
		})},
		"a lease taken early": {"loss", begin().grant("a", 1, 2, 9, 5).add(4, history.Event{
			By: "a", Call: 1, Kind: history.End, Err: worker.Taken, Until: 9 * ms,
		})},
		"a lease that ran out": {"", begin().grant("a", 1, 2, 9, 5).add(9, history.Event{
			By: "a", Call: 1, Kind: history.End, Err: worker.Expired, Until: 9 * ms,
		})},
	}
}

// writes are histories of a fenced resource.
func writes() map[string]judged {
	return map[string]judged{
		"a write of the past": {"fence", begin().grant("a", 1, 2, 4, 5).grant("b", 4, 5, 9, 6).write(6, "b", 6, false, false).
			write(7, "a", 5, false, false)},
		"a write of the past, refused": {"", begin().grant("a", 1, 2, 4, 5).grant("b", 4, 5, 9, 6).
			write(6, "b", 6, false, false).write(7, "a", 5, true, false)},
		"a write without a grant": {"fence", begin().write(7, "a", 5, false, false)},
		"a valid write, refused":  {"refusal", begin().grant("a", 1, 2, 9, 5).write(4, "a", 5, true, false)},
	}
}

// ends are histories that leave something, or a lock for too long.
func ends() map[string]judged {
	return map[string]judged{
		"goroutines left":       {"left", begin().add(9, history.Event{By: "a", Kind: history.Left, Value: 2})},
		"a key without an end":  {"left", begin().add(9, history.Event{Kind: history.Key, Name: "k", Value: -1})},
		"a lock freed in time":  {"", begin().add(0, history.Event{Kind: history.Calm}).grant("a", 500, 2900, 2950, 5).add(4000, history.Event{})},
		"a lock freed too late": {"liveness", begin().add(0, history.Event{Kind: history.Calm}).grant("a", 500, 3500, 3600, 5).add(4000, history.Event{})},
		"a lock that is asked for, and given up": {"", begin().add(0, history.Event{Kind: history.Calm}).
			ask("a", 500, 2000).add(4000, history.Event{})},
		"a lock that is asked for in vain": {"liveness", begin().add(0, history.Event{Kind: history.Calm}).grant("z", -9, -8, -7, 1).
			ask("a", 500, 3900).add(4000, history.Event{})},
		"a lock freed too late, in a fault": {"", begin().add(0, history.Event{Kind: history.Calm}).fault(9, 99, "").
			grant("a", 500, 3500, 3600, 5).add(4000, history.Event{})},
	}
}

// attempts are histories of Once.
func attempts() map[string]judged {
	return map[string]judged{
		"once, and told again": {"", begin().step(1, "a", "begin", history.Call, 0, "", "").
			step(2, "a", "begin", history.Return, 1, "", "").step(3, "a", "complete", history.Return, 1, "", "v").
			step(4, "b", "begin", history.Call, 0, "", "").step(5, "b", "begin", history.Return, 0, worker.Completed, "v")},
		"two values of once": {"once", begin().step(1, "a", "begin", history.Call, 0, "", "").
			step(3, "a", "complete", history.Return, 1, "", "v").
			step(5, "b", "begin", history.Return, 0, worker.Completed, "w")},
		"begun after it was recorded": {"once", begin().step(3, "a", "complete", history.Return, 1, "", "v").
			step(4, "b", "begin", history.Call, 0, "", "").step(5, "b", "begin", history.Return, 2, "", "")},
		"begun twice where failures are held": {"once", begin().step(1, "a", "begin", history.Call, 0, "", "").
			step(2, "a", "begin", history.Return, 1, "", "").
			step(4, "b", "begin", history.Call, 0, "", "").step(5, "b", "begin", history.Return, 2, "", "")},
	}
}

// TestCheckersFindWhatIsWrong gives each checker a history that it must refuse, and its right twin that it must not.
func TestCheckersFindWhatIsWrong(t *testing.T) {
	for _, histories := range []map[string]judged{overlaps(), limits(), tokenOrders(), beliefs(), writes(), ends(), attempts()} {
		for name, test := range histories {
			t.Run(name, func(t *testing.T) {
				got := test.story.check().Violations
				switch {
				case test.want == "" && len(got) > 0:
					t.Errorf("violations: %q", got)
				case test.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], test.want)):
					t.Errorf("violations: %q, want one of %q", got, test.want)
				}
			})
		}
	}
}

func TestCheckCounts(t *testing.T) {
	r := begin().grant("a", 1, 2, 4, 5).grant("b", 4, 5, 9, 6).fault(3, 4, "").write(6, "b", 6, false, true).
		write(7, "a", 5, true, true).write(8, "a", 5, true, false).check()
	if r.Grants != 22 || r.Stale != 1 || r.Refused != 1 || r.Rows[34] != 1 || r.Topology != "test" {
		t.Errorf("%+v", r)
	}
}

// TestLossWithoutATimeIsNotMeasured: a handler behind a guard is notified of a loss, and does not know how long its lease was valid.
func TestLossWithoutATimeIsNotMeasured(t *testing.T) {
	t.Parallel()
	for until, want := range map[int64]int{9 * ms: 1, 0: 0} {
		s := begin().grant("a", 1, 2, 9, 5).add(10, history.Event{By: "a", Call: 1, Kind: history.End, Err: worker.Expired, Until: until})
		if told := s.check().Told.All; len(told) != want {
			t.Errorf("until %v: %v", until, told)
		}
	}
}

func TestRunWithoutGrantsFails(t *testing.T) {
	s := *begin().fault(1, 2, "")
	if got := check.Check(s).Violations; len(got) != 1 || !strings.HasPrefix(got[0], "inconclusive") {
		t.Errorf("violations: %q", got)
	}
}

func TestEmptyHistoryIsAViolation(t *testing.T) {
	if got := check.Check(nil).Violations; len(got) != 1 {
		t.Errorf("violations: %q", got)
	}
}
