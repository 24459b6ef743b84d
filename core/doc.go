// Package core makes one thing happen at a time, or only once, across many processes that share a Redis.
//
//	locks, err := core.New(rdb) // rdb: a go-redis client; keep locks for the life of the process
//	defer locks.Close()
//
//	err = locks.Mutex("order:42").Do(ctx, func(ctx context.Context) error {
//		return charge(ctx) // ctx is cancelled, with a cause, if the lease is lost
//	})
//
// # Leases
//
// Redis grants a lock for a time, its TTL, and the [Client] renews it until it is unlocked. While the lease is valid by the clock of
// the Redis server, no other owner has the lock. Its context is cancelled at [Lease.ValidUntil] at the latest, whether or not Redis
// replies. A holder that is paused past its lease, and an asynchronous failover, are beyond any lease: let the resource refuse
// smaller fencing tokens ([Lease.Token], [TokenFrom]).
//
// # Strategies
//
//   - [Client.Mutex]: one owner at a time. The fastest strategy, and the one that Redisson shares.
//   - [Client.Fair]: the same, in the order of arrival across all processes.
//   - [Client.Read] and [Client.Write]: many readers or one writer. [Client.FairRead], [Client.FairWrite]: in order of arrival.
//   - [Client.Semaphore]: at most n permits at a time.
//   - [Multi]: several locks, all or none. [NewRedlock]: a majority of several servers.
//   - [Client.Election]: a leader among processes, whom the others can find.
//
// All strategies exclude each other on one name, and all are reentrant. Ownership travels in the context: [Lease.Context], the
// context of [Lock.Do] and contexts derived from them enter the lock again; every other call waits.
//
// # Once
//
// A lock does not prevent a second run after the first. [Client.Once] does: it records the run and its result, for 24 hours unless
// [WithRetention] says otherwise.
//
//	result, err := locks.Once("payment:42").Do(ctx, func(ctx context.Context) ([]byte, error) {
//		return pay(ctx) // runs once; later calls get what it returned
//	})
//
// Call [Complete] right after the effect: then a failure or a crash behind it does not let the next call run. [Release]
// says that nothing happened, [Hold] that nobody knows. [WithFailurePolicy] decides about runs that fail without such a
// call. [KeyHash] is the same for every attempt of a key: pass it to another service as its idempotency key. All of
// these work in the guards for HTTP, cron jobs and tasks too. [OnceValue] is for a value of any type.
//
// # Errors
//
// [ErrNotAcquired] says that the lock is held, [ErrInProgress], [ErrCompleted] and [ErrOutcomeUnknown] give the state of a record,
// [ErrUnavailable] that Redis does not reply, and [ErrLeaseLost] is the cause of the context of a lost lease. Check errors with
// [errors.Is], and read the facts of [NotAcquiredError] and its kind with [errors.As].
//
// # Redis
//
// One server, Sentinel or Cluster, from version 6.2, with maxmemory-policy noeviction. Guides, guarantees and runbooks are at
// https://github.com/holdfast-go/holdfast/tree/main/docs.
package core
