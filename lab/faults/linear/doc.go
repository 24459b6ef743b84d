// Package linear judges a history by models of what it went against: it asks porcupine, a linearizability checker,
// whether the operations can be put in an order that a correct lock, semaphore, election or register allows.
//
// It is a second judgement. It shares no code with package check, whose rules compare grants in pairs and excuse
// overlaps afterwards. Here a whole order must exist, in which each operation takes effect at one moment between its
// call and its return.
//
// # Terms
//
//   - partition: the operations on one name, or on one resource of the register. Each is judged by itself, because a
//     history is linearizable exactly if the history of each object is.
//   - grant: a request that has returned a lease, with its token.
//   - end: the moment from which another grant may follow. What the holder reports bounds it, see lease.ends.
//   - proven release: an unlock that returned without an error. The holder had the lease until then.
//   - excused: a lease that a fault may have made Redis forget, see [history.Event]. It may end as soon as the fault
//     begins, and its release proves nothing.
//   - illegal: no order exists. Unknown: the search found none in its time, which is not a verdict.
//
// # Models
//
//	free ──grant(t)──► held by t ──end or release(t)──► free      a mutex, a writer, a leader
//	held by t, d deep ──re-entry(t)──► d+1 ──leave──► d           a holder that enters again; released when d is 0
//	k in use ──grant(t, k')──► k+k' ≤ n in use                     a semaphore; n comes with each request
//	greatest token g ──write(t ≥ g)──► t;  write(t < g): refused   the register
//
// A mutex is judged with and without tokens, and with and without re-entries: see mutexes.
//
// The register has a side without a fence, which accepts all writes. It is judged by the same model, as a baseline.
//
// All grants of a name have growing tokens. So the order of the grants is known, and the search only has to place the
// ends and the releases among them.
package linear
