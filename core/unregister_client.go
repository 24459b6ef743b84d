package core

import "context"

// wakeNext wakes the next client, because this one was woken when none of its callers waited any more.
func (s *server) wakeNext(lock, set string) {
	s.keeper.background(func(ctx context.Context) {
		_, _ = s.exec.Do(ctx, wakeNextIfFreeScript, []string{lock, set}, s.publishVerb) // if it fails, the others ask after a grace
	})
}

// unregisterClient takes the number of the client out of the set in Redis if the request has left its wait list empty.
// Why: otherwise a release would wake a client that does not wait, and the other clients would ask only after a grace.
func (r *acquisition) unregisterClient(t *localWaiter) {
	m, plain := r.protocol.(mutex)
	if !plain || !t.unregister {
		return
	}
	k, number := r.hold.keys, r.keeper.clientNumber
	r.keeper.background(func(ctx context.Context) {
		if m.server.subs.CountWaitingClients(k.channel) > 0 {
			return // callers of another wait list do
		}
		ctx, cancel := context.WithTimeout(ctx, firstAnswer)
		defer cancel()
		_, _ = m.server.exec.Do(ctx, wakeNextIfFreeScript, []string{k.lock, k.waitingClients}, m.server.publishVerb, number)
		m.server.subs.RecheckAll(k.channel) // the number of callers that came meanwhile was taken out too
	})
}
