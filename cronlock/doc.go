// Package cronlock lets several replicas run the same robfig/cron schedule so that each tick, a time on the schedule of a job,
// starts on at most one of them, whatever their clocks and however short the job:
//
//	c := cron.New(cron.WithLocation(time.UTC))
//	_, err := cronlock.AddFunc(c, locks, "0 3 * * *", "shop/report", func(ctx context.Context) error {
//		return report(ctx) // ctx is cancelled, with a cause, if the lease is lost
//	})
//	c.Start()
//
// A replica claims a tick in Redis under the name of the job and the tick's time on the schedule, not under the time of the
// request. [WithLeader] runs ticks only on the replica that leads an election, and [Leader] does the same for all jobs of a
// cron, without the promise of a tick. [Exclusive], a wrapper for [cron.NewChain], only prevents two runs at the same time.
//
// # What is guaranteed
//
// Each tick of a job name starts on at most one replica, whatever the clock skew, the pauses or the lengths of leases. This
// needs two conditions: the replicas use the same name, spec, zone, start deadline and catch-up window, and Redis does not lose
// the claim.
//
// The tick starts on exactly one replica if one live replica has a clock within [WithMaxSkew] of the clock of Redis, reaches Redis
// within [WithStartDeadline], and does not crash between its claim and its start; unless the job is paused or an earlier run is
// in progress. Completion is not guaranteed without [WithFailover]. With failover a tick may start more than once, each time
// with a greater fencing token.
//
// # What goes wrong
//
//   - Two services have a job of the same name, and take each other's ticks. The name identifies the job, in one namespace per
//     Redis and key prefix, so put the service into it. A replica that notices this logs a warning: [WithService].
//   - Replicas have different zones. A spec without a zone has the local zone of each replica: use [cron.WithLocation] or
//     "CRON_TZ=America/New_York 30 1 * * *".
//   - A run is paused past its lease and does not notice in time. Let the resource refuse smaller tokens ([core.TokenFrom]).
//
// # Defaults
//
//   - A tick is skipped while an earlier run is in progress ([core.WithWait], [AllowOverlap]).
//   - A tick whose runner crashes is lost ([WithFailover]).
//   - A tick that all replicas missed is lost ([WithCatchUp]).
//   - A tick that could not be claimed because Redis did not reply is skipped ([FailOpen]).
//   - A job that returns an error has run.
//
// [Jobs] lists the jobs of all replicas, and [Job] returns a handle on one of them, to pause it or to read its last runs.
//
// [cron.Cron.Stop] does not cancel a run: [WithContext] does. Stop first, end that context, wait for the context that Stop
// returned, which includes runs of other replicas that this one watches, then close the client.
//
// [The guide] has ticks and daylight saving, hooks and log lines, robfig's wrappers, and every case of a failure.
//
// [The guide]: https://github.com/holdfast-go/holdfast/blob/main/docs/cron.md
package cronlock
