package linear_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/lab/faults/history"
	"github.com/holdfast-go/holdfast/lab/faults/worker"
)

// TestMutex has histories of a mutex. Those of one pair differ in one thing.
func TestMutex(t *testing.T) {
	t.Parallel()
	two := func() *story { return begin().grant("a", 1, 2, 20, 5) }
	judged{
		legal: map[string]*story{
			"one after the other":               two().unlock("a", 5, 6, "").grant("b", 3, 7, 20, 6),
			"granted during the release":        two().unlock("a", 5, 9, "").grant("b", 3, 7, 20, 6),
			"granted after the lease":           begin().grant("a", 1, 2, 6, 5).grant("b", 3, 7, 20, 6),
			"granted after a killed holder":     begin().grant("a", 1, 2, 6, 5).grant("b", 3, 6, 20, 6).grant("c", 8, 21, 30, 7),
			"returned in another order":         begin().grant("a", 1, 8, 3, 5).grant("b", 2, 4, 9, 6),
			"renewed, and released":             two().valid("a", 15, 40).unlock("a", 30, 31, "").grant("b", 3, 32, 40, 6),
			"released without an answer":        two().unlockLost("a", 5).grant("b", 3, 7, 20, 6),
			"released with an unclear answer":   two().unlock("a", 5, 9, worker.Unavailable).grant("b", 3, 7, 20, 6),
			"not held after it ran out":         begin().grant("a", 1, 2, 4, 5).grant("b", 5, 6, 9, 6).unlock("a", 7, 8, worker.NotHeld),
			"expired":                           begin().grant("a", 1, 2, 6, 5).lost("a", 6, 6, worker.Expired).grant("b", 3, 7, 9, 6),
			"held too long, not held":           two().lost("a", 5, 20, worker.TooLong).unlock("a", 6, 7, worker.NotHeld).grant("b", 3, 8, 9, 6),
			"its process closes":                two().leaving("a", 5).grant("b", 3, 7, 20, 6),
			"forgotten":                         two().fault(4, 5, "FLUSHALL").grant("b", 3, 7, 20, 6),
			"forgotten, and taken":              two().fault(4, 5, "ForceUnlock").lost("a", 8, 20, worker.Taken),
			"forgotten, and not held":           two().fault(4, 5, "ForceUnlock").unlock("a", 8, 9, worker.NotHeld),
			"released, and then forgotten":      two().unlock("a", 5, 12, "").grant("b", 3, 7, 20, 6).fault(10, 11, "ForceUnlock"),
			"released, the release forgotten":   two().unlock("a", 5, 12, worker.NotHeld).grant("b", 3, 7, 20, 6).fault(10, 11, "eviction"),
			"forgotten, release not of its own": two().fault(3, 4, "FLUSHALL").grant("b", 5, 6, 9, 6).unlock("a", 7, 8, "").unlock("b", 8, 9, ""),
		},
		illegal: map[string]*story{
			"held too long, and still in Redis": two().lost("a", 5, 20, worker.TooLong).grant("b", 3, 8, 30, 6),
			"two at a time":                     two().grant("b", 3, 7, 20, 6),
			"two, released after that":          two().unlock("a", 8, 9, "").grant("b", 3, 7, 20, 6),
			"two, the first was renewed":        begin().grant("a", 1, 2, 6, 5).valid("a", 5, 20).grant("b", 3, 7, 20, 6),
			"two, another process closes":       two().leaving("c", 5).grant("b", 3, 7, 20, 6),
			"two after a fault":                 begin().fault(0, 1, "FLUSHALL").grant("a", 2, 3, 20, 5).grant("b", 4, 7, 20, 6),
			"two, and a fault loses nothing":    two().fault(4, 5, "").grant("b", 3, 7, 20, 6),
			"two, then released and forgotten":  two().grant("b", 3, 7, 20, 6).unlock("a", 8, 12, "").fault(10, 11, "ForceUnlock"),
			"two before a fault":                two().grant("b", 3, 7, 20, 6).fault(8, 9, "FLUSHALL"),
			"a release of the next one's lock":  begin().grant("a", 1, 2, 4, 5).grant("b", 5, 6, 9, 6).unlock("a", 7, 8, ""),
			"two, the release forgotten":        two().grant("b", 3, 7, 20, 6).unlock("a", 8, 12, worker.NotHeld).fault(10, 11, "eviction"),
			"not held, and forgotten later":     two().unlock("a", 5, 8, worker.NotHeld).grant("b", 3, 7, 20, 6).fault(10, 11, "eviction"),
			"not held, but valid":               two().unlock("a", 5, 6, worker.NotHeld),
			"taken, but valid":                  two().lost("a", 5, 20, worker.Taken),
			"a token that falls":                begin().grant("a", 1, 2, 3, 5).grant("b", 4, 6, 8, 4),
			"a token that falls after a fault":  begin().grant("a", 1, 2, 3, 5).fault(3, 4, "FLUSHALL").grant("b", 4, 6, 8, 4),
			"a token twice":                     begin().grant("a", 1, 2, 3, 5).grant("b", 1, 6, 8, 5),
		},
	}.run(t, "fenced-mutex")
}

// TestReentrantMutex has histories of holders that enter again.
func TestReentrantMutex(t *testing.T) {
	t.Parallel()
	entered := func() *story { return begin().grant("a", 1, 2, 20, 5).enter("a", 3, 4, 5, 6, "") }
	held := func() *story { return begin().grant("a", 1, 2, 20, 5) }
	judged{
		legal: map[string]*story{
			"left, and released":             entered().unlock("a", 8, 9, "").grant("b", 3, 10, 20, 6),
			"twice":                          entered().enter("a", 8, 9, 5, 10, "").unlock("a", 12, 13, "").grant("b", 3, 14, 20, 6),
			"left without a known outcome":   held().enter("a", 3, 4, 5, 6, worker.Unavailable).unlock("a", 8, 9, "").grant("b", 3, 10, 20, 6),
			"renewed, and so entered later":  begin().grant("a", 1, 2, 3, 5).enter("a", 5, 6, 5, 7, "").grant("b", 4, 9, 20, 6),
			"forgotten, and another token":   held().fault(3, 4, "FLUSHALL").enter("a", 5, 6, 6, 7, worker.NotHeld),
			"forgotten, entered before that": held().enter("a", 3, 4, 5, 5, "").fault(7, 8, "FLUSHALL").grant("b", 4, 9, 20, 6),
		},
		illegal: map[string]*story{
			"another token":                  held().enter("a", 3, 4, 6, 6, ""),
			"entered after its release":      held().unlock("a", 3, 4, "").enter("a", 5, 6, 5, 7, ""),
			"entered during another hold":    begin().grant("a", 1, 2, 3, 5).grant("b", 4, 5, 20, 6).enter("a", 7, 8, 5, 9, ""),
			"granted before it was left":     begin().grant("a", 1, 2, 3, 5).enter("a", 3, 4, 5, 9, "").grant("b", 5, 6, 20, 6),
			"the token of the next, entered": begin().grant("a", 1, 2, 3, 5).grant("b", 4, 5, 20, 6).enter("a", 7, 8, 6, 9, ""),
		},
	}.run(t, "reentrant-fenced-mutex")
	judged{
		legal:   map[string]*story{"another token": held().enter("a", 3, 4, 6, 6, "")},
		illegal: map[string]*story{"entered during another hold": begin().grant("a", 1, 2, 3, 5).grant("b", 4, 5, 20, 6).enter("a", 7, 8, 5, 9, "")},
	}.run(t, "reentrant-mutex")
	judged{
		legal:   map[string]*story{"a token that falls": begin().grant("a", 1, 2, 3, 5).grant("b", 4, 6, 8, 4)},
		illegal: map[string]*story{"two at a time": held().grant("b", 3, 7, 20, 6)},
	}.run(t, "mutex")
}

// TestRedlock has histories of a lock on several servers, on each of which a lease ends by itself.
func TestRedlock(t *testing.T) {
	t.Parallel()
	held := func() *story { return begin().lock("redlock", "a", 1, 2, 20, 5) }
	judged{
		legal: map[string]*story{
			"released on some, the lease over on others": held().lock("redlock", "b", 3, 7, 20, 6).unlock("a", 5, 25, worker.NotHeld),
			"released": held().unlock("a", 5, 6, "").lock("redlock", "b", 3, 7, 20, 6),
		},
		illegal: map[string]*story{
			"two, the release comes later": held().lock("redlock", "b", 3, 7, 20, 6).unlock("a", 8, 25, worker.NotHeld),
			"two":                          held().lock("redlock", "b", 3, 7, 20, 6),
		},
	}.run(t, "fenced-mutex")
}

// TestReadWrite has histories of a name that readers share.
func TestReadWrite(t *testing.T) {
	t.Parallel()
	reader := func() *story { return begin().lock("read", "r", 1, 2, 20, 5) }
	judged{
		legal: map[string]*story{
			"two readers":                  reader().lock("read", "a", 3, 4, 20, 6),
			"a writer after the reader":    reader().unlock("r", 5, 6, "").lock("write", "a", 3, 7, 20, 6),
			"readers after the writer":     reader().unlock("r", 5, 6, "").lock("write", "a", 3, 7, 9, 6).lock("read", "b", 8, 10, 20, 7),
			"a writer after a lost reader": begin().lock("read", "r", 1, 2, 6, 5).lock("write", "a", 3, 7, 20, 6),
		},
		illegal: map[string]*story{
			"a reader and a writer":     reader().lock("write", "a", 3, 7, 20, 6),
			"a writer and a reader":     begin().lock("write", "a", 1, 2, 20, 5).lock("read", "r", 3, 7, 20, 6),
			"a writer and both readers": reader().lock("read", "a", 3, 4, 20, 6).unlock("r", 5, 6, "").lock("write", "b", 3, 7, 20, 7),
		},
	}.run(t, "read-write")
}

// TestSemaphore has histories of permits. n belongs to each request.
func TestSemaphore(t *testing.T) {
	t.Parallel()
	two := func() *story { return begin().permit("a", 1, 2, 20, 5, 2, 0).permit("b", 1, 3, 20, 6, 2, 1) }
	judged{
		legal: map[string]*story{
			"two of two":                      two(),
			"a third after a release":         two().unlock("a", 5, 6, "").permit("c", 4, 7, 20, 7, 2, 0),
			"a third after a lost one":        begin().permit("a", 1, 2, 6, 5, 2, 0).permit("b", 1, 3, 20, 6, 2, 1).permit("c", 4, 7, 20, 7, 2, 0),
			"a third, whose n is three":       two().permit("c", 4, 7, 20, 7, 3, 2),
			"both of two":                     begin().permits("a", 1, 2, 20, 5, 2, 2, 0),
			"a reader and one of two":         begin().lock("read", "r", 1, 2, 20, 5).permit("a", 3, 4, 20, 6, 2, 0),
			"slots that are not known":        begin().permit("a", 1, 2, 20, 5, 2, -1).permit("b", 1, 3, 20, 6, 2, -1),
			"a third that Redis has room for": two().fault(4, 5, "eviction").permit("c", 4, 7, 20, 7, 2, 0),
			"a late release that frees none":  begin().permit("a", 1, 2, 4, 5, 1, 0).permit("b", 5, 6, 20, 6, 1, 0).unlock("a", 7, 8, worker.NotHeld),
		},
		illegal: map[string]*story{
			"three of two":                  two().permit("c", 4, 7, 20, 7, 2, 2),
			"three, whose n falls to two":   begin().permit("a", 1, 2, 20, 5, 3, 0).permit("b", 1, 3, 20, 6, 3, 1).permit("c", 4, 7, 20, 7, 2, 2),
			"two permits and one of two":    begin().permits("a", 1, 2, 20, 5, 2, 2, 0).permit("b", 3, 4, 20, 6, 2, 2),
			"a reader and two of two":       begin().lock("read", "r", 1, 2, 20, 5).permits("a", 3, 4, 20, 6, 2, 2, 0),
			"a writer and a permit":         begin().lock("write", "w", 1, 2, 20, 5).permit("a", 3, 4, 20, 6, 2, 0),
			"a slot twice":                  two().permit("c", 4, 7, 20, 7, 3, 1),
			"a late release that frees one": begin().permit("a", 1, 2, 4, 5, 1, 0).permit("b", 5, 6, 20, 6, 1, 0).unlock("a", 7, 8, "").permit("c", 4, 9, 20, 7, 1, 0),
			"one of one, after a late release": begin().permit("a", 1, 2, 4, 5, 1, 0).permit("b", 5, 6, 20, 6, 1, 0).
				unlock("a", 7, 8, worker.NotHeld).permit("c", 4, 9, 20, 7, 1, 0),
		},
	}.run(t, "semaphore")
}

// TestMulti has two names that are locked together. An answer about the lease may be about either of them.
func TestMulti(t *testing.T) {
	t.Parallel()
	both := func() *story {
		return begin().pair(1, 2, history.Event{
			By: "a", Op: "lock", Strategy: "multi", Names: []string{"n", "m"}, Token: 5, Until: 20 * ms,
		})
	}
	for name, test := range map[string]struct {
		story   *story
		illegal int
	}{
		"held":              {both(), 0},
		"released":          {both().unlock("a", 5, 6, "").grant("b", 3, 7, 20, 6), 0},
		"one was taken":     {both().lost("a", 5, 20, worker.Taken).grant("b", 3, 7, 20, 6), 0},
		"one was not held":  {both().unlock("a", 5, 6, worker.NotHeld).grant("b", 3, 7, 20, 6), 0},
		"one is granted":    {both().grant("b", 3, 7, 20, 6), 1},
		"released too late": {both().unlock("a", 8, 9, "").grant("b", 3, 7, 20, 6), 1},
	} {
		t.Run(name, func(t *testing.T) {
			if c := test.story.check().Models["mutex"]; c.Partitions != 2 || c.Illegal != test.illegal || c.Unknown != 0 {
				t.Errorf("%+v, want %d illegal", c, test.illegal)
			}
		})
	}
}
