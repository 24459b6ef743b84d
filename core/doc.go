// Package core makes one thing happen at a time, or only once, across many processes that share a Redis.
//
//	locks, err := core.New(rdb) // rdb: a go-redis client; keep locks for the life of the process
//	defer locks.Close()
//
//	err = core.Do(ctx, locks.Mutex("order:42"), func(ctx context.Context) error {
//		return charge(ctx) // ctx ends, with a cause, if the lease is lost
//	})
//
// # What is guaranteed
//
// A lock is a lease: Redis gives it to one owner for a time, its TTL, and the [Client] renews it until it is
// unlocked. While the lease is valid by the clock of the Redis server, nobody else has the lock. The holder is
// told in time: the lease's context ends at [Lease.ValidUntil] at the latest, which is never later than the
// expiry in Redis, whether or not Redis answers.
//
// What no lease can promise: that a holder which is paused (by a garbage collection, by its host) notices in
// time; that an asynchronous failover or an eviction keeps the lock. The remedy is the fencing token,
// [Lease.Token], which grows with every grant: hand it to the resource and let that refuse smaller ones than it
// has seen. See [TokenFrom].
//
// # Strategies
//
//   - [Client.Mutex]: one owner at a time. The quickest, and the one that Redisson shares.
//   - [Client.Fair]: the same, in the order of arrival across all processes.
//   - [Client.Read] and [Client.Write]: many readers or one writer, with the turns of [sync.RWMutex].
//   - [Client.FairRead] and [Client.FairWrite]: the same in the order of arrival.
//
// [NewRedlock] makes such locks on several independent servers; a majority of them decides.
//
// All of them exclude each other on one name. All are reentrant: whoever holds a lock enters again. Ownership
// travels in the context, so "whoever" means the calls that use [Lease.Context], or the context that [Do] hands in,
// or what descends from them. Every other call waits, also one in the same goroutine. Goroutines that share the
// context share the ownership of this lock, and of no other. The context of a lease that is over makes no caller an
// owner.
//
// [Multi] makes one lock of several, of any strategy and client: all are held, or none. It does not matter in which
// order callers name them. The lease is over when one of theirs is, and has one token for all.
//
// # Once
//
// A lock keeps two runs apart; it does not keep a second one from following the first. [Client.Once] does: it remembers
// that a run is in progress, and afterwards that it was completed and with which result, for 24 hours unless
// [WithRetention] says otherwise.
//
//	result, err := locks.Once("payment:42").Do(ctx, func(ctx context.Context) ([]byte, error) {
//		return pay(ctx) // runs once; whoever comes later gets what it returned
//	})
//
// While it runs, the lease is renewed as that of a lock is, and others get [ErrInProgress] or wait, see [WithWait]. What a
// failed run leaves, [WithFailurePolicy] says: by default the next one may try. Where nobody knows how a run ended,
// [Once.Resolve] and [Once.Forget] record what somebody has found out. [Once.Begin] gives the steps one by one.
//
// # Waiting
//
// Lock waits until its context ends. Waiters of a Mutex are served in the order in which they came within a process,
// and only the first of each name talks to Redis; between processes whoever asks first after a release wins. A
// release is announced by message, so waiters wake at once; because messages get lost, they also look by
// themselves every second or two.
//
// Waiters of the other strategies stand in a line that Redis keeps. Whoever unlocks grants the lock to the next,
// which is told by a message of its own; if that is lost, a sign of life that every waiter gives each second brings
// the news. A waiter without signs of life loses its place after five seconds.
//
// # Errors
//
// A lock that is held is [ErrNotAcquired], with the facts in a [NotAcquiredError]; a wait that was cancelled is
// also the error of its context. A Redis that does not answer is [ErrUnavailable]. A lease that is over is
// [ErrNotHeld] to Unlock and Extend, and [ErrLeaseLost] is the cause of its context if it was lost. Ask with
// [errors.Is], never with ==.
//
// # Redis
//
// One server, Sentinel or Cluster, from version 6.2, without eviction (maxmemory-policy noeviction). All that is written
// has an expiry. On the key itself lies what Redisson's RLock would write, so both can share a lock. Beside it, with the
// key as their hash tag:
//
//	holdfast:token…       the last fencing token, for two hours
//	holdfast:released…    the end of one hold, for 15 s; for ten minutes if a request of it may arrive yet
//	holdfast:callers…     the clients that wait for a Mutex, for some seconds
//	holdfast:writers…     who waits in line for the exclusive lock
//	holdfast:readers…     who waits in line for a share
//	holdfast:waiters…     what those in line have asked for
//	holdfast:reads…       the shares that readers hold
//	holdfast:location…    the name of the place where the key lies, for a day: of a [Multi] of clients with different
//	                      connections to one key
//	holdfast:once…        the record of a [Once], for its retention
//	holdfast:group…       the records of a group, [WithGroup]
//	holdfast:grouptoken…  the last fencing token of a group with a quota, in place of one for each key
package core
