// Package cronlock lets several replicas run the same robfig/cron schedule so that each tick starts on at most one of
// them, whatever their clocks and however short the job: a tick is claimed in Redis under the name of the job and its
// time on the schedule, not under when somebody came for it. [Exclusive], a wrapper for [cron.NewChain], does less: it
// lets no two runs go on at the same time, but a job that is shorter than the difference of two clocks runs on both
// replicas, one after the other.
//
//	c := cron.New(cron.WithLocation(time.UTC))
//	_, err := cronlock.AddFunc(c, locks, "0 3 * * *", "report", func(ctx context.Context) error {
//		return report(ctx) // ctx ends, with a cause, if the lease is lost
//	})
//	c.Start()
//
// # Names
//
// The name of a job identifies it, in one name space per Redis and key prefix. It has to be the same on all replicas
// and stay the same through all versions, so it is never made of the name of a function. Two services with a job of the
// same name take its ticks from each other; a replica that notices warns of it, see [WithService].
//
// # What is guaranteed
//
// For a job name, each tick (its time on the schedule) starts on at most one replica, whatever the clock skew, the
// pauses or the lengths of leases, provided that the replicas use the same name, spec, zone, tzdata, start deadline and
// catch-up window, and that Redis does not lose the claim. If at least one live replica whose clock is within
// [WithMaxSkew] of that of Redis reaches Redis within [WithStartDeadline], and does not die or lose its Redis between
// its claim and its start, the tick starts on exactly one, unless the job is paused or an earlier run goes on.
// Completion is not guaranteed unless [WithFailover] is on. With failover a tick may start more than once, each time
// with a greater fencing token.
//
// It holds because Redis grants a tick only from MaxSkew before it until the start deadline after it, by the clock of
// Redis, and remembers it for longer than that: a tick that was forgotten is always too late. The clock of a replica
// decides when it comes for a tick, never which tick it gets. What Redis loses (FLUSHALL, an eviction, a failover
// without [core.WithReplicaAck]) can run again within that time.
//
// A run that is paused past its lease does not notice in time. With failover another one may follow by then, and so may
// the next tick: hand the token ([core.TokenFrom]) to the resource and let it refuse smaller ones. Job and tick of
// [RunFrom] make a key under which effects can be told apart.
//
// # Ticks
//
// A tick is found by the clock when the scheduler starts the job, and is handled once by each replica. Ticks that the
// scheduler has passed over, as it does after a stall of the process, are claimed if they may still start, and reported
// as [Late] if not. A rollout that changes the spec still shares the ticks that both specs have.
//
// "@every" counts from 1970 here instead of from the start of each process, in whole seconds as ever: "@every 1h" is
// each full hour, "@every 24h" midnight in UTC.
//
// A spec without a zone is read in that of the cron, which is the local one of each replica by default: use
// [cron.WithLocation] or "CRON_TZ=America/New_York 30 1 * * *". Where daylight saving ends, a time of the day comes
// twice and is two ticks; where it begins, one that is skipped on the clock is no tick. That is what robfig's schedules
// say.
//
// # Defaults
//
// A tick that comes while an earlier run goes on is skipped ([WithWait], [AllowOverlap]). One whose runner dies is over
// ([WithFailover]). One that all replicas missed is over ([WithCatchUp]). One that could not be claimed because Redis
// did not answer is skipped ([FailOpen]). A job that returns an error has run. All of that is told to [Hooks] and a
// logger, [History] tells of the last runs on all replicas, and [Jobs] of the jobs that they have.
//
// # With robfig's wrappers
//
//   - [cron.Recover] in the chain of the cron sees the panics of jobs, after they were recorded. Without it they end
//     the process, as always.
//   - [cron.SkipIfStillRunning] in the chain skips before the claim: another replica takes the tick. It is not needed.
//   - [cron.DelayIfStillRunning] in the chain holds a job back until its tick is too old. Use [WithWait].
//   - For these two, a tick that is caught up or taken over is an entry of its own: they do not see other runs of it.
//   - [Exclusive] in the chain of the whole cron would let all jobs exclude each other.
//
// [cron.Cron.Stop] tells no run to end: [WithContext] does. Stop first, end that context, wait for the context that
// Stop returned, then close the client. Stop waits for runs of this replica, and not for those of others that it
// watches.
package cronlock
