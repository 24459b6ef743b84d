// Package gocronlock runs the jobs of go-co-op/gocron v2 on one of several replicas. gocron has two interfaces for that,
// and they promise different things:
//
//   - [Elector]: one replica leads an election and runs all jobs. It is the better choice, since no tick depends on clocks.
//   - [Locker]: each run takes a lock named after its job. It spreads jobs over the replicas, and promises less.
//
// Both give a job a context that ends when the job may no longer run, with the method Func. gocron itself asks only
// before each run: without Func, a job that takes long does not learn that another replica has begun.
//
//	elector := gocronlock.Elector(locks.Election("scheduler"))
//	go elector.Lead(ctx) // without it no job runs
//	s, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
//	_, err = s.NewJob(gocron.CronJob("0 3 * * *", false), gocron.NewTask(elector.Func(report)))
//
// # What a Locker does not promise
//
// gocron gives its Locker the name of the job, and not the tick. So the lock does not know whether a tick has run:
//
//   - Hosts whose clocks differ run a tick twice, one after the other, unless the minimum hold is longer than the
//     difference. It is [DefaultMinHold] unless [core.WithMinHold] says otherwise.
//   - A [gocron.DurationJob] counts from the start of its process. So replicas have different ticks. The minimum hold must be
//     nearly the period, or each replica runs the job in each period.
//   - A minimum hold that is as long as the period, and a run that takes longer, make all replicas miss the next tick.
//   - A tick is lost if its runner crashes, and all ticks until the lease expires.
//   - gocron drops what Unlock returns. A lost lease is in the log, and ends the context of Func.
//   - Jobs with the same name share one lock, in all services that share Redis and its prefix.
//
// Where each tick has to run once at most, use package cronlock: it claims the time on the schedule.
//
// # What both do not promise
//
// A process that is paused past its lease does not notice in time. Let the resource that a job writes to refuse smaller
// fencing tokens: see [core.TokenFrom]. While Redis does not reply, a Locker starts no job, and the leader of an Elector
// starts jobs until its lease ends. The guide is https://github.com/holdfast-go/holdfast/blob/main/docs/gocron.md.
package gocronlock
