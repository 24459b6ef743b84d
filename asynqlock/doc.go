// Package asynqlock makes a task of hibiken/asynq take effect once, though asynq delivers at least once, and can even
// run a task twice at the same time: after a timeout that the handler does not heed, a shutdown, a lost
// acknowledgement, a stalled worker. [Once] means no second time: it keeps a record of each key. [Exclusive] means no
// two at the same time: it serialises tasks of one user or document and remembers nothing.
//
//	mux := asynq.NewServeMux()
//	mux.Handle("receipt:send", asynqlock.Once(locks, asynqlock.ByPayload("order"))(sendReceipt))
//
//	cfg := asynq.Config{Concurrency: 10}
//	asynqlock.Configure(&cfg)
//	server := asynq.NewServer(redisOpt, cfg)
//
// # What is guaranteed
//
// At most one completion is recorded for a key within the retention of its record ([WithRetention], 24 hours unless
// told). At most one handler of a key runs at a time, as long as Redis keeps its data, its clock moves forward, and a
// handler stops at once when its context ends with [core.ErrLeaseLost] as its cause: others may come in from then on.
// Effects are at least once: a crash between an effect and
// its record repeats the effect. [Complete], called right after the effect, makes that gap small; it closes where the
// effect itself refuses to happen twice: give the service that you call the [KeyHash] as Idempotency-Key, let the
// resource refuse smaller fencing tokens ([core.TokenFrom]), or write effect and record in one transaction.
// [AtMostOnce] turns it round: what may have happened is not repeated, but waits for somebody who finds out.
//
// # What happens to a task
//
//   - None of its key has run: it runs.
//   - One has completed: it is acknowledged without running, with the recorded result ([SetResult]).
//   - One is running: it comes back about 10 s later ([WithRetryIn]) and burns no retry, or waits ([WithWait]), or is
//     skipped ([SkipDuplicates]). On its last attempt it waits, since asynq would archive it. Tasks behind [Exclusive] can
//     stand in line instead ([WithLine]), and run one right after the other.
//   - One has failed, or its worker is gone and its lease is over: it runs, with a greater token and attempt number. With
//     [AtMostOnce] it is archived, with [core.ErrOutcomeUnknown].
//   - Its handler returns [asynq.RevokeTask]: asynq deletes it, and nothing is recorded, also with AtMostOnce.
//   - One with another payload, where the key does not say which fields count: it is archived, with
//     [core.ErrFingerprintMismatch]. See [ComparePayload].
//   - Redis cannot be asked: it comes back ([FailOpen]).
//
// # Zombies
//
// asynq never waits for a handler: at the deadline of a task (30 minutes unless told), at a cancellation and at the end
// of the time for a shutdown it gives the task to another worker, while the handler goes on, and what that returns is
// ignored. So the context of a handler ends a little earlier than that of asynq ([WithCommitMargin]), its lease is
// renewed for as long as it runs, up to [WithZombieGrace], and a success is recorded even then: the next delivery finds
// it.
//
// asynq gives no sign of a shutdown but a BaseContext that you end, and its Shutdown returns before such handlers do:
// wait for them with [Runs.Drain] before you close the client.
//
// # Advice
//
//   - Keys: use a business key, [ByPayload] or [ByHeader], for what a producer may enqueue twice. [ByTaskID] recognises
//     deliveries of one task, which has an ID of its own. Never use it for periodic tasks with a fixed ID.
//   - Periodic tasks: enqueue them with [Enqueue], once per tick, and guard them by [ByTick].
//   - MaxRetry of at least 1: asynq archives a task without retries when its worker dies.
//   - A connection pool apart from asynq's, so that renewals do not wait for it; the same Redis will do, if its
//     maxmemory-policy is noeviction.
//   - [Configure]: without it, a deferred task burns a retry each time.
package asynqlock
