package cronlock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// ErrUnknownJob refuses a name that no replica has registered. A job is registered when the cron of a replica starts,
// or when a replica asks for a tick. A registration lasts for at least two days, or three periods of its schedule if
// that is longer.
var ErrUnknownJob = errors.New("holdfast: cronlock: unknown job")

// JobInfo is a job as a replica has registered it.
type JobInfo struct {
	// Name is the name of the job.
	Name string
	// Service is the service that registered the job last, see [WithService].
	Service string
	// Spec is that of its schedule, or the type of the schedule for [AddSchedule]; Zone is that of the cron.
	Spec, Zone string
	// Paused is true if the job is paused, see [Pause].
	Paused bool
	// LastTick is the latest tick that was claimed; zero if Redis has none.
	LastTick time.Time
	// Registered is when a replica last registered the job, by the clock of Redis. Replicas do so every hour at most,
	// when they ask for a tick.
	Registered time.Time
}

// registration is what is recorded of a job.
type registration struct {
	Service string `json:"service"`
	Spec    string `json:"spec"`
	Zone    string `json:"zone"`
	Digest  string `json:"digest"`
	Replica string `json:"replica"`
}

const (
	leastRegistered = 2 * 24 * time.Hour
	refreshInterval = time.Hour
)

// refresh registers the job in the background, now and then.
func (j *job) refresh() {
	if elapsed(&j.registered, time.Now(), refreshInterval) {
		go func() {
			ctx, cancel := context.WithTimeout(j.config.context, time.Minute)
			defer cancel()
			if err := j.register(ctx); err != nil {
				j.registered.Store(0) // again at the next tick
				j.config.logger.Debug("holdfast: cronlock: job not registered", "job", j.name, "error", err)
			}
		}()
	}
}

// register records the job, unless that was done in the last hour.
func (j *job) register(ctx context.Context) error {
	kept := max(leastRegistered, 3*currentPeriod(j.schedule, time.Now().In(j.cron.Location())))
	once := j.locks.Once(jobKey(j.name), core.WithGroup(), core.WithWait(0), core.WithRetention(whole(kept)))
	for {
		attempt, err := once.Begin(ctx)
		var completed *core.CompletedError
		switch {
		case err == nil:
			return attempt.Complete(ctx, j.registration())
		case !errors.As(err, &completed):
			if errors.Is(err, core.ErrInProgress) {
				return nil // another replica is about to register it
			}
			return err
		case !j.outdated(completed.Record, kept):
			return nil
		}
		if err := once.Forget(ctx); err != nil {
			return err
		}
	}
}

func (j *job) registration() []byte {
	i := j.identity
	text, err := json.Marshal(registration{i.service, i.spec, i.zone, i.digest, j.config.replica})
	if err != nil {
		panic(err) // not with fields of these types
	}
	return text
}

// outdated reports whether the record is to be written again.
func (j *job) outdated(record core.Record, kept time.Duration) bool {
	var r registration
	if json.Unmarshal(record.Value, &r) != nil {
		return true
	}
	j.compareIdentity(r.Replica, r.Service, r.Digest)
	return r.Service != j.identity.service || r.Digest != j.identity.digest || record.Retention < kept-refreshInterval
}

// Jobs returns the jobs that replicas have registered in this Redis under the prefix of the client, by name.
func Jobs(ctx context.Context, locks *core.Client) ([]JobInfo, error) {
	if locks == nil {
		return nil, errNoClient
	}
	records, err := locks.Records(ctx, registry)
	if err != nil {
		return nil, err
	}
	var jobs []JobInfo
	for _, record := range records {
		name, ok := strings.CutPrefix(record.Key, registry)
		var r registration
		if ok && json.Unmarshal(record.Value, &r) == nil {
			jobs = append(jobs, JobInfo{Name: name, Service: r.Service, Spec: r.Spec, Zone: r.Zone, Registered: record.Ended})
		}
	}
	slices.SortFunc(jobs, func(a, b JobInfo) int { return strings.Compare(a.Name, b.Name) })
	return jobs, fillAll(ctx, locks, jobs)
}

// fillAll reads what is not in the registry, of some jobs at a time.
func fillAll(ctx context.Context, locks *core.Client, jobs []JobInfo) error {
	const atOnce = 16
	errs := make([]error, len(jobs))
	room := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i := range jobs {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			errs[i] = jobs[i].fill(ctx, locks)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (i *JobInfo) fill(ctx context.Context, locks *core.Client) error {
	flag, err := locks.Once(pauseKey(i.Name)).Peek(ctx)
	if err != nil {
		return err
	}
	i.Paused = flag.State == core.StateCompleted
	records, err := locks.Records(ctx, groupOf(i.Name))
	i.LastTick = latest(i.Name, records)
	return err
}

// checkKnown returns [ErrUnknownJob] for a job that was neither registered nor paused.
func checkKnown(ctx context.Context, locks *core.Client, name string) error {
	for _, key := range []string{jobKey(name), pauseKey(name)} {
		record, err := locks.Once(key).Peek(ctx)
		if err != nil || record.State != core.StateNone {
			return err
		}
	}
	return fmt.Errorf("%w %q: Jobs lists those that replicas have", ErrUnknownJob, name)
}
