package cronlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/foreign"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// AddFunc adds a job to a schedule that runs on several replicas: each tick starts on at most one of them. The name
// identifies the job on all replicas, through all versions: keep it when the function or the spec changes. All jobs of
// one Redis and key prefix share one namespace, see [WithService].
//
// The parser of c reads the spec. Its ticks are as [Parser] says, the same on all replicas.
//
// The context of fn ends if the lease of the run is lost or the context of [WithContext] ends. It carries the fencing
// token, [core.TokenFrom], and the [Run], see [RunFrom]. An error of fn is recorded and logged; the tick does not run
// again. A panic is recorded and continues: see [cron.Recover].
//
// AddFunc does no I/O. With [WithFailover] or [WithCatchUp], c has one more entry until it has started. AddFunc returns
// an error for a wrong argument, spec or option, and for a name that c has already. A spec that no date fits, such as
// "0 0 30 2 *", is logged: the job never runs.
func AddFunc(
	c *cron.Cron, locks *core.Client, spec, name string, fn func(context.Context) error, opts ...Option,
) (cron.EntryID, error) {
	return add(jobPlace("cronlock.AddFunc"), c, locks, spec, nil, name, fn, opts)
}

// AddJob is [AddFunc] for a [cron.Job], which cannot be cancelled. If the job has a method RunContext(context.Context)
// error, that method is called instead of Run.
func AddJob(
	c *cron.Cron, locks *core.Client, spec, name string, cmd cron.Job, opts ...Option,
) (cron.EntryID, error) {
	if cmd == nil {
		return 0, invalid("the job is nil")
	}
	return add(jobPlace("cronlock.AddJob"), c, locks, spec, nil, name, funcOf(cmd), opts)
}

// AddSchedule is [AddFunc] for a schedule of any kind. All replicas need to compute the same ticks. Ticks differ if
// their nanoseconds differ.
func AddSchedule(
	c *cron.Cron, locks *core.Client, schedule cron.Schedule, name string, fn func(context.Context) error, opts ...Option,
) (cron.EntryID, error) {
	if schedule == nil {
		return 0, invalid("the schedule is nil")
	}
	return add(jobPlace("cronlock.AddSchedule"), c, locks, "", schedule, name, fn, opts)
}

// add has either a spec or a schedule.
func add(
	place guard.Place, c *cron.Cron, locks *core.Client, spec string, schedule cron.Schedule, name string,
	fn func(context.Context) error, opts []Option,
) (cron.EntryID, error) {
	switch {
	case c == nil:
		return 0, errNoCron
	case fn == nil:
		return 0, invalid("the function is nil")
	}
	config, err := newConfig(place, opts)
	if err = cmp.Or(err, config.check(locks, name)); err != nil {
		return 0, err
	}
	if _, there := find(c, name); there {
		return 0, fmt.Errorf("%w: cronlock: there is a job %q already", core.ErrInvalidName, name)
	}
	if schedule == nil {
		if schedule, err = parse(c, spec); err != nil {
			return 0, invalid("job %q: %w", name, foreign.Error(err, maxShownText))
		}
	}
	now := time.Now().In(c.Location())
	schedule = align(schedule)
	if err := checkSchedule(schedule, now); err != nil {
		return 0, invalid("job %q: %w", name, err)
	}
	j := newJob(name, fn, config, seal.FactsOf(locks))
	j.cron, j.locks, j.schedule = c, locks, schedule
	j.progress.add(now)
	if j.guard, err = guard.NewOnce("cron", locks, config.guarded()); err != nil {
		return 0, err
	}
	j.identity = newIdentity(config.service, spec, schedule, c.Location())
	// An owner of its own, whatever the client or the caller's context say: no run enters the lock of another one.
	newOwner, _ := seal.FactsOf(locks).NewOwner.(core.LockOption)
	j.lock = locks.Mutex(groupOf(name), append(config.lockOptions(), newOwner)...)
	if err := errors.Join(j.lock.Check(), j.checkFailover(), j.checkWindow(now)); err != nil {
		return 0, err
	}
	j.warn(now)
	return j.list(), nil
}

// adding lets the jobs of a cron find what they share.
var adding sync.Mutex

// list adds the job to its cron.
func (j *job) list() cron.EntryID {
	adding.Lock()
	defer adding.Unlock()
	other, _ := firstJob(j.cron, func(*job) bool { return true })
	if other != nil {
		j.watch = other.watch
	} else {
		j.watch = &watch{cron: weak.Make(j.cron)}
	}
	id := j.cron.Schedule(j, j)
	if other == nil {
		j.watch.await()
	}
	if j.config.attempts > 1 || j.config.catchUp > 0 {
		j.help(time.Time{})
	}
	return id
}

var errNoCron = invalid("the cron is nil")

func funcOf(cmd cron.Job) func(context.Context) error {
	if job, ok := cmd.(interface{ RunContext(context.Context) error }); ok {
		return job.RunContext
	}
	return func(context.Context) error {
		cmd.Run()
		return nil
	}
}

// parse reads a spec as c does: cron.Cron does not expose its parser, so it adds a job that does nothing and is removed at once.
// robfig's parser panics about "TZ=" without a spec.
func parse(c *cron.Cron, spec string) (s cron.Schedule, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("spec %q: %v", spec, r)
		}
	}()
	id, err := c.AddFunc(spec, func() {})
	if err != nil {
		return nil, err
	}
	defer c.Remove(id)
	if s = c.Entry(id).Schedule; s == nil {
		return nil, fmt.Errorf("spec %q: the parser returned neither a schedule nor an error", spec)
	}
	return s, nil
}

// find returns the job of that name.
func find(c *cron.Cron, name string) (*job, bool) {
	j, _ := firstJob(c, func(j *job) bool { return j.name == name })
	return j, j != nil
}

// firstJob returns the first job for which cond is true, and its entry; nil if there is none.
func firstJob(c *cron.Cron, cond func(*job) bool) (*job, cron.Entry) {
	for _, entry := range c.Entries() {
		if j, ok := entry.Job.(*job); ok && cond(j) {
			return j, entry
		}
	}
	return nil, cron.Entry{}
}

// warn logs that replicas in different zones would not have the same ticks, and that the schedule names a date that does not exist,
// such as February 30, or is over.
func (j *job) warn(now time.Time) {
	if zone, _ := now.In(time.Local).Zone(); zone != "UTC" && local(j.schedule, j.cron.Location()) {
		j.logger.Warn("holdfast: cronlock: the schedule is in the local time zone, which has to be the same on all "+
			"replicas: use CRON_TZ=, or cron.WithLocation", "job", j.shown(), "zone", zone)
	}
	if j.schedule.Next(now).IsZero() {
		j.logger.Warn("holdfast: cronlock: the schedule has no tick to come, so it starts no run", "job", j.shown())
	}
}

// local reports whether ticks depend on the local zone: a spec without a zone is read in the scheduler's zone.
func local(s cron.Schedule, scheduler *time.Location) bool {
	e, ok := s.(*expression)
	return ok && e.spec.Location == time.Local && scheduler == time.Local
}

const (
	// maxName bounds the names of jobs, in bytes.
	maxName = 200
	// maxShownText bounds texts of others in errors and in the log.
	maxShownText = 200
)

// shown returns the name of the job for the log.
func (j *job) shown() string { return foreign.Line(j.name, maxName) }

// checkName refuses what cannot be told apart in Redis. The names of jobs are the same on all replicas and through all
// versions, so they are never made of functions' names.
func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: cronlock: the job has no name", core.ErrInvalidName)
	case len(name) > maxName:
		return fmt.Errorf("%w: cronlock: name of %d bytes: at most %d are allowed", core.ErrInvalidName, len(name), maxName)
	case strings.ContainsAny(name, "{}\x00"):
		return fmt.Errorf("%w: cronlock: name %q: braces and NUL are not allowed", core.ErrInvalidName, name)
	}
	return nil
}
