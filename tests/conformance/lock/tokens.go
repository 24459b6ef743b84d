package lockconformance

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

var tokenTests = map[string]func(*testing.T, Subject){
	"TokensGrow":             tokensGrow,
	"TokensGrowAfterRestart": func(t *testing.T, s Subject) { tokensGrowAfter(t, s, (*world).restart) },
	"TokensGrowAfterFlush":   func(t *testing.T, s Subject) { tokensGrowAfter(t, s, (*world).flush) },
	"NothingStaysBehind":     nothingStaysBehind,
}

// tokensGrow: one side continues where the other has stopped.
func tokensGrow(t *testing.T, s Subject) {
	w := newWorld(t, s)
	var last *core.Lease
	grants := 0
	for i := range 20 {
		p := w.process()
		for range 5 {
			lease := w.must(p.byTurns(grants).Strategy("name").Lock(context.Background()))
			if last != nil {
				w.wantNewer(lease, last)
			}
			last = lease
			grants++
			if i%2 == 0 {
				w.unlock(lease)
			}
			if i%2 == 1 {
				_ = p.close() // releases what is held
				break
			}
		}
	}
}

// flush empties all masters, and thereby their replicas.
func (w *world) flush() {
	w.each(func(s *testkit.Server) {
		if s.Info("replication", "role") != "master" {
			return
		}
		if err := s.Client().FlushAll(context.Background()).Err(); err != nil {
			w.t.Errorf("flush: %v", err)
		}
	})
}

// tokensGrowAfter takes a lock, loses all state, and takes it again.
func tokensGrowAfter(t *testing.T, s Subject, lose func(*world)) {
	w := newOwnWorld(t, s)
	p := w.process()
	before := w.must(p.lock("name").Lock(context.Background(), core.WithTTL(long)))
	for grants := range 3 {
		lose(w)
		after := w.must(w.process().byTurns(grants + 1).Strategy("name").Lock(context.Background()))
		w.wantNewer(after, before)
		before = after
	}
}

// nothingStaysBehind looks for keys that would stay forever, while somebody waits and when all is over.
func nothingStaysBehind(t *testing.T, s Subject) {
	w := newWorld(t, s)
	ctx := context.Background()
	p := w.process()
	lease := w.must(p.lock("name").Lock(ctx))
	w.unlock(w.must(p.lock("name").Lock(lease.Context())))
	waiting, cancel := context.WithCancel(ctx)
	given := p.lineUp(waiting, "name")
	w.wantExpiries()
	cancel()
	receive(t, given)
	w.unlock(lease)
	w.unlock(w.must(p.lock("short").Lock(ctx, core.WithMinHold(long))))
	w.must(p.lock("kept").Lock(ctx))
	w.wantExpiries()
}
