// Package asynqlock makes a task of hibiken/asynq take effect once. asynq delivers at least once, and can even run a task twice
// at the same time: after a timeout that the handler ignores, a shutdown, a lost acknowledgement, a stalled worker. [Once] means
// no second time: it keeps a record of each key. [Exclusive] means no two at the same time: it serialises tasks of one user or
// document, and keeps no record.
//
//	mux := asynq.NewServeMux()
//	mux.Handle("receipt:send", asynqlock.Once(locks, asynqlock.ByPayload("order"))(asynq.HandlerFunc(sendReceipt)))
//
//	cfg := asynq.Config{Concurrency: 10}
//	asynqlock.Configure(&cfg) // without it, each deferral uses up a retry
//	server := asynq.NewServer(redisOpt, cfg)
//
// # What is guaranteed
//
// At most one completion is recorded for a key within the retention of its record ([core.WithRetention], 24 hours by default).
// At most one handler of a key runs at a time, as long as Redis keeps its data, its clock moves forward, and a handler stops at
// once when its context ends with [core.ErrLeaseLost] as its cause.
//
// # What happens to a task
//
//   - None of its key has run: it runs.
//   - One has completed: it is acknowledged without running, with the recorded result ([SetResult]).
//   - One is running: it is redelivered about 10 s later ([WithRetryIn]) without using up a retry, or waits ([core.WithWait]).
//     On its last attempt it waits, because asynq would archive it. Tasks behind [Exclusive] can queue in a line ([WithLine]).
//   - One has failed, or its worker has crashed and its lease has expired: it runs, with a greater token and attempt number.
//     With [core.HoldFailures] it is archived, with [core.ErrOutcomeUnknown].
//   - Redis is unreachable: it is redelivered ([FailOpen]).
//
// # What goes wrong
//
//   - A crash between an effect and its record repeats the effect. [core.Complete], called right after the effect, makes that gap
//     small. To close it, give the service that you call the [core.KeyHash] as Idempotency-Key, or write effect and record in
//     one transaction (package sqllock).
//   - A periodic task with a fixed ID runs once in 24 hours behind [ByTaskID]. Enqueue it with [Enqueue], and guard it by [ByTick].
//   - A handler continues after asynq has given up its task: a zombie. The guard renews its lease up to [WithZombieGrace] and
//     records even a late success. At a shutdown, wait for such handlers with [Runs.Drain] before you close the client.
//   - A task without retries is archived when its worker crashes: enqueue with a MaxRetry of at least 1.
//
// Use a connection pool apart from asynq's, so that renewals do not wait for it. The same Redis will do, if its maxmemory-policy
// is noeviction.
//
// [The guide] has keys, schedules, queues of tasks, at most once, and every case.
//
// [The guide]: https://github.com/holdfast-go/holdfast/blob/main/docs/asynq.md
package asynqlock
