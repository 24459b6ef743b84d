// Package cronlock lets several replicas run the same robfig/cron schedule so that each tick starts on at most one of
// them, whatever their clocks and however short the job. A replica claims a tick in Redis under the name of the job
// and the tick's time on the schedule, not under the time of the request. [Exclusive], a wrapper for [cron.NewChain],
// does less: it prevents two runs at the same time. A job shorter than the difference of two clocks still runs on both
// replicas, one after the other. [Leader] runs jobs only on the replica that leads an election, and [WithLeader] does so
// with the promise of a tick.
//
//	c := cron.New(cron.WithLocation(time.UTC))
//	_, err := cronlock.AddFunc(c, locks, "0 3 * * *", "report", func(ctx context.Context) error {
//		return report(ctx) // ctx ends, with a cause, if the lease is lost
//	})
//	c.Start()
//
// # Names
//
// The name identifies a job, in one namespace per Redis and key prefix. It has to be the same on all replicas and
// through all versions, so cronlock never derives it from the name of a function. Two services with a job of the same
// name take each other's ticks. A replica that notices this logs a warning, see [WithService].
//
// # What is guaranteed
//
// Each tick of a job name starts on at most one replica, whatever the clock skew, the pauses or the lengths of leases.
// This needs two conditions: the replicas use the same name, spec, zone, tzdata, start deadline and catch-up window,
// and Redis does not lose the claim.
//
// The tick starts on exactly one replica if one live replica meets three conditions, unless the job is paused or an
// earlier run is in progress:
//
//   - Its clock is within [WithMaxSkew] of that of Redis.
//   - It reaches Redis within [WithStartDeadline].
//   - It does not crash or lose its Redis between its claim and its start.
//
// Completion is not guaranteed without [WithFailover]. With failover a tick may start more than once, each time with a
// greater fencing token.
//
// Redis grants a tick only from MaxSkew before it until the start deadline after it, by the clock of Redis, and
// remembers the tick for longer than that. So a tick without a record is always too late. The clock of a replica
// decides when it asks for a tick, never which tick it gets. If Redis loses data (FLUSHALL, an eviction, a failover
// without [core.WithReplicaAck]), a tick can run again within that time.
//
// A run that is paused past its lease does not notice in time. With failover another run may follow by then, and so
// may the next tick. Hand the token ([core.TokenFrom]) to the resource, and let the resource refuse smaller ones. Job
// and tick of [RunFrom] make a key that identifies the effects of a run.
//
// # Ticks
//
// The job finds its tick by the clock when the scheduler starts it, and each replica handles a tick once. After a
// stall of the process or a suspend of the host, the scheduler may have passed over ticks. The job claims those that may still start,
// and reports the others as [Late]: [WithCatchUp] runs the latest one. A clock that is set, forward or back, or a suspend does not
// keep a job from its next tick for more than a few seconds. A rollout that changes the spec still shares the ticks that both specs
// have.
//
// "@every" counts from 1970 here instead of from the start of each process, in whole seconds: "@every 1h" is each full
// hour, "@every 24h" midnight in UTC.
//
// A spec without a zone has the zone of the cron, which is the local zone of each replica by default: use
// [cron.WithLocation] or "CRON_TZ=America/New_York 30 1 * * *". Where daylight saving ends, one time of the day occurs
// twice and is two ticks. Where it begins, a time that the clock skips has its tick right after the gap: see [Parser].
//
// # Defaults
//
//   - A tick is skipped while an earlier run is in progress ([core.WithWait], [AllowOverlap]).
//   - A tick whose runner crashes is lost ([WithFailover]).
//   - A tick that all replicas missed is lost ([WithCatchUp]).
//   - A tick that could not be claimed because Redis did not answer is skipped ([FailOpen]).
//   - A job that returns an error has run.
//
// A job may say what became of it. After [core.Complete] no replica runs its tick again, even if its process crashes. After
// [core.Release] nothing is recorded: with [WithFailover] another replica runs the tick again, and otherwise it is over. After
// [core.Hold] no replica runs it, and the outcome is [Unknown].
//
// [Jobs] lists the jobs of all replicas, and [Job] returns a handle on one of them, to pause it or to read its last runs.
//
// # Hooks and logs
//
// Jobs report all of these to [core.Hooks] and the log of their client, with the place "cron", the name of the job as the label
// and the tick as Due:
//
//   - RunStart and RunEnd for each run. [RunFrom] finds it in their contexts; in RunEnd it has the outcome.
//   - NotRun for each tick that does not run here, even because it runs on another replica. The reason is [Taken] or another
//     one of this package. A tick that runs later after all, see [WithCatchUp], is reported twice, and so may be one to which the
//     clock comes twice.
//   - Incident for a run without Redis ([FailOpen]), a lost lease, an end that is not recorded, and a run that continues after
//     the whole [WithZombieGrace]. Its kinds [IncidentSkew] and [IncidentMismatch] are about the replica.
//
// The hooks run on the goroutine of the job, except for a run that does not stop, an end that is recorded later, and a mismatch.
// There their panics are logged.
//
// # With robfig's wrappers
//
//   - [cron.Recover] in the chain of the cron sees the panics of jobs, after they were recorded. Without it they end the process,
//     as always.
//   - [cron.SkipIfStillRunning] in the chain skips before the claim: another replica takes the tick. It is not needed.
//   - [cron.DelayIfStillRunning] in the chain holds a job back until its tick is too old. Use [core.WithWait].
//   - For these two, a tick that is watched ([WithFailover]) is still running. What a replica finds when it starts is an entry of
//     its own.
//   - [Leader] comes last in a chain, because the others hide the context of its jobs.
//   - [Exclusive] in the chain of the whole cron would make all jobs exclude each other.
//
// [cron.Cron.Stop] does not cancel a run: [WithContext] does. Stop first, end that context, wait for the context that
// Stop returned, then close the client. Stop waits for runs of this replica, and for runs of other replicas that it watches until
// that context ends.
package cronlock
