// Package asynqlock makes a task of hibiken/asynq take effect once. asynq delivers at least once, and can even run a
// task twice at the same time: after a timeout that the handler ignores, a shutdown, a lost acknowledgement, a stalled
// worker. [Once] means no second time: it keeps a record of each key. [Exclusive] means no two at the same time: it
// serialises tasks of one user or document, and keeps no record.
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
// At most one completion is recorded for a key within the retention of its record ([core.WithRetention], 24 hours by
// default).
//
// At most one handler of a key runs at a time. This needs three conditions: Redis keeps its data; its clock moves
// forward; a handler stops at once when its context ends with [core.ErrLeaseLost] as its cause, because another one
// may start then.
//
// Effects are at least once: a crash between an effect and its record repeats the effect. [core.Complete], called right
// after the effect, makes that gap small. To close it, make the effect itself refuse a repetition: give the service
// that you call the [core.KeyHash] as Idempotency-Key, let the resource refuse smaller fencing tokens ([core.TokenFrom]),
// or write effect and record in one transaction. [core.HoldFailures] reverses this: it does not repeat what may have
// happened, and an operator decides.
//
// # What happens to a task
//
//   - None of its key has run: it runs.
//   - One has completed: it is acknowledged without running, with the recorded result ([SetResult]).
//   - One is running: it is redelivered about 10 s later ([WithRetryIn]) without using up a retry, or waits ([core.WithWait]).
//     On its last attempt it waits, since asynq would archive it. Tasks behind [Exclusive] can queue in a line ([WithLine]).
//   - One has failed, or its worker has crashed and its lease has expired: it runs, with a greater token and attempt
//     number. With [core.HoldFailures] it is archived, with [core.ErrOutcomeUnknown].
//   - Redis is unreachable: it is redelivered ([FailOpen]).
//
// The hooks and the logger of the client ([core.WithHooks], [core.WithLogger]) get all of this, with the place "task", the type
// of the task as label, and one of the reasons below for a task that did not run.
//
// # Zombies
//
// asynq never waits for a handler. At the deadline of a task (30 minutes by default), at a cancellation, and at the
// end of the shutdown timeout, it gives the task to another worker and ignores what the handler returns later. A
// handler that still runs then is a zombie. So the context of a handler ends a little earlier than that of asynq, by a tenth of
// the task's time or 2 s. The guard renews the lease while the handler runs, up to [WithZombieGrace], and records even a
// late success: the next delivery finds it.
//
// asynq announces a shutdown only by a BaseContext that you end, and its Shutdown returns before such handlers do.
// Wait for them with [Runs.Drain] before you close the client.
//
// # Advice
//
//   - Keys: use a business key, [ByPayload] or [ByHeader], for what a producer may enqueue twice. [ByTaskID] recognises
//     deliveries of one task, which has an ID of its own. Never use it for periodic tasks with a fixed ID.
//   - Periodic tasks: enqueue them with [Enqueue], once per tick, and guard them by [ByTick].
//   - MaxRetry of at least 1: asynq archives a task without retries when its worker crashes.
//   - Use a connection pool apart from asynq's, so that renewals do not wait for it. The same Redis will do, if its
//     maxmemory-policy is noeviction.
//   - [Configure]: without it, each deferral uses up a retry.
package asynqlock
