package core

import (
	"context"

	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/core/internal/waiters"
)

// wakeNext wakes the next client, because this one was woken when none of its callers waited any more.
func (s *server) wakeNext(lock, set string) {
	s.keeper.background(func(ctx context.Context) {
		_ = s.WakeNextIfFree(ctx, lock, set) // if it fails, the others ask after a grace
	})
}

// unregisterClient takes the number of the client out of the set in Redis if the request has left its wait list empty.
// Why: otherwise a release would wake a client that does not wait, and the other clients would ask only after a grace.
func (r *acquisition) unregisterClient(t *waiters.Waiter) {
	m, plain := r.protocol.(lockscript.Mutex)
	if !plain || !t.Unregister {
		return
	}
	k, number := r.hold.Keys, r.keeper.clientNumber
	r.keeper.background(func(ctx context.Context) {
		if m.Subs.CountWaitingClients(k.Channel) > 0 {
			return // callers of another wait list do
		}
		ctx, cancel := context.WithTimeout(ctx, transport.FirstAnswerTimeout)
		defer cancel()
		_ = m.WakeNextIfFree(ctx, k.Lock, k.WaitingClients, number)
		m.Subs.RecheckAll(k.Channel) // the number of callers that came meanwhile was taken out too
	})
}
