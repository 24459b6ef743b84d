// Package core makes one thing happen at a time, or only once, across many processes that share a Redis.
//
//	locks, err := core.New(rdb) // rdb: a go-redis client; keep locks for the life of the process
//	defer locks.Close()
//
//	err = locks.Mutex("order:42").Do(ctx, func(ctx context.Context) error {
//		return charge(ctx) // ctx ends, with a cause, if the lease is lost
//	})
//
// # What is guaranteed
//
// A lock is a lease: Redis grants it to one owner for a time, its TTL, and the [Client] renews it until you unlock it.
// While the lease is valid by the clock of the Redis server, no other owner has the lock. The lease's context ends at
// [Lease.ValidUntil] at the latest, whether or not Redis answers. That time is never later than the expiry in Redis.
//
// No lease can promise two things. A holder that is paused, by a garbage collection or by its host, may not notice its
// expiry in time. An asynchronous failover or an eviction may lose the lock. The remedy is the fencing token,
// [Lease.Token], which grows with every grant. Send it to the resource, and let the resource refuse smaller tokens
// than it has seen. See [TokenFrom].
//
// # Strategies
//
//   - [Client.Mutex]: one owner at a time. The fastest strategy, and the one that Redisson shares.
//   - [Client.Fair]: the same, in the order of arrival across all processes.
//   - [Client.Read] and [Client.Write]: many readers or one writer, with the turns of [sync.RWMutex].
//   - [Client.FairRead] and [Client.FairWrite]: the same in the order of arrival.
//   - [Client.Semaphore]: at most n permits at a time, in the order of arrival.
//
// [NewRedlock] makes locks on several independent servers. A majority of the servers decides.
//
// All strategies exclude each other on one name, and all are reentrant: the holder of a lock can enter it again.
// Ownership travels in the context. [Lease.Context], the context that [Lock.Do] gives to your function, and contexts
// derived from them enter the lock again. Every other call waits, even one in the same goroutine. Goroutines that
// share the context share the ownership of this lock, and of no other. The context of a lease that has ended makes no
// caller an owner.
//
// [Multi] makes one lock of several, of any strategy and client: all are held, or none. Callers may name them in any
// order. The lease ends when one member's lease ends, and has one token for all.
//
// # Once
//
// A lock prevents two runs at the same time. It does not prevent a second run after the first. [Client.Once] does: it
// records that a run is in progress, and later that the run completed, with its result. The record lasts for 24 hours
// unless [WithRetention] says otherwise.
//
//	result, err := locks.Once("payment:42").Do(ctx, func(ctx context.Context) ([]byte, error) {
//		return pay(ctx) // runs once; later calls get what it returned
//	})
//
// [OnceValue] does the same for a value of any type.
//
// During the run, the client renews its lease as that of a lock. Other callers get [ErrInProgress], or wait, see
// [WithWait]. [WithFailurePolicy] sets what a failed run leaves: by default the next call runs again. If the outcome
// of a run is unknown, an operator finds out and calls [Once.Resolve] or [Once.Forget]. [Once.Begin] gives you the
// steps one by one.
//
// # Elections
//
// [Client.Election] elects one leader among processes. Its context ends before another candidate can win, its term is its
// fencing token, and the others can read and observe the present leader.
//
// # Waiting
//
// Lock waits until its context ends. Within a process, waiters of a Mutex get the lock in the order of arrival, and
// only the first waiter for each name sends commands to Redis. Between processes, the first to ask after a release
// gets the lock. A message announces a release, so waiters wake at once. Messages can get lost, so waiters also ask
// every one to two seconds.
//
// Waiters of the other strategies wait in a queue that Redis keeps. Unlocking grants the lock to the next waiter,
// which gets a message of its own. If that message is lost, the waiter's next heartbeat, within a second, returns the
// grant. A waiter without heartbeats loses its place after five seconds.
//
// # Errors
//
// If the lock is held, the error is [ErrNotAcquired], with the facts in a [NotAcquiredError]. If a context ended the
// wait, the error is also that context's error. If Redis does not answer, it is [ErrUnavailable]. Unlock and Extend of
// a lease that has ended return [ErrNotHeld]. [ErrLeaseLost] is the cause of the context of a lost lease. Check errors
// with [errors.Is], never with ==.
//
// # Redis
//
// One server, Sentinel or Cluster, from version 6.2, without eviction (maxmemory-policy noeviction). All keys have an
// expiry. The key of a lock itself holds what Redisson's RLock would write, so both can share a lock. The other keys
// are in its slot of a Cluster, and have that key as their hash tag, except the token and the deployment:
//
//	holdfast:token…            the last fencing token, for two hours: one key for all names, or one for each slot of a
//	                           Cluster
//	holdfast:released…         the end of one hold, for ten minutes: if a request of it may still arrive. For 15 s: the end of
//	                           an attempt of a [Once] that was released or sent twice, or of a hold of a [Redlock]
//	holdfast:ended…            the attempts of a [Once] whose end was forgotten or resolved, for ten minutes
//	holdfast:forced…           that [Client.ForceUnlock] has freed the lock, until the lease that it ended would expire
//	holdfast:waiting_clients…  the clients that wait for a Mutex, for some seconds
//	holdfast:exclusive_queue…  the queue for the exclusive lock
//	holdfast:shared_queue…     the queue for a share
//	holdfast:waiters…          what the waiters in the queues have asked for
//	holdfast:share_expiries…   the shares that readers and owners of permits hold, with their expiries
//	holdfast:slots…            the permits of a semaphore, with their slots
//	holdfast:deployment…       the id of the deployment, one for each slot, for a day: for a [Multi] across clients
//	holdfast:once…             the record of a [Once], for its retention
//	holdfast:group…            the records of a group, [WithGroup]
//	holdfast:paused…           whether a job of package cronlock is paused, and its last pause
package core
