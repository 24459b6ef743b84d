package cronlock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/foreign"
)

// identity tells apart jobs of one name that are not the same.
type identity struct {
	service string
	spec    string // or the type of the schedule
	zone    string // of the cron
	digest  string // of spec and zone, or of some ticks
}

func newIdentity(service, spec string, s cron.Schedule, zone *time.Location) identity {
	i := identity{service: service, spec: spec, zone: zone.String()}
	hash := sha256.New()
	if spec == "" {
		i.spec = typeName(s)
		for _, tick := range firstTicks(s, anchor(zone)) {
			_, _ = io.WriteString(hash, tick.UTC().Format(time.RFC3339Nano)+"\n")
		}
	}
	_, _ = io.WriteString(hash, i.spec+"\n"+i.zone)
	i.digest = hex.EncodeToString(hash.Sum(nil)[:8])
	return i
}

// typeName returns the type of a schedule as it was passed to [AddSchedule].
func typeName(s cron.Schedule) string {
	if e, ok := s.(*expression); ok {
		s = e.spec
	}
	return fmt.Sprintf("%T", s)
}

// firstTicks are enough to tell most schedules apart.
func firstTicks(s cron.Schedule, from time.Time) (ticks []time.Time) {
	for range 8 {
		if from = s.Next(from); from.IsZero() {
			break
		}
		ticks = append(ticks, from)
	}
	return ticks
}

// note is what a record of a run says about its runner. The record has the replica by itself.
func (i identity) note() string { return i.service + "\n" + i.digest }

// readNote returns no service if the note has none.
func readNote(note string) (service, digest string) {
	service, digest, _ = strings.Cut(note, "\n")
	return service, digest
}

// compare looks whether the record of a tick that another replica has claimed is that of the same job.
func (j *job) compare(tick time.Time, err error) {
	var completed *core.CompletedError
	switch {
	case errors.As(err, &completed):
		j.compareRecord(tick, completed.Record)
	case errors.Is(err, core.ErrInProgress) && elapsed(&j.compared, time.Now(), compareInterval):
		ctx, cancel := context.WithTimeout(j.config.context, leastPatience)
		defer cancel()
		if record, err := j.locks.Once(tickKey(j.name, tick)).Peek(ctx); err == nil {
			j.compareRecord(tick, record)
		}
	}
}

// compareInterval bounds how often a record is read only to compare identities.
const compareInterval = 10 * time.Minute

func (j *job) compareRecord(tick time.Time, r core.Record) {
	if service, digest := readNote(r.Note); service != "" {
		j.compareIdentity(tick, r.Instance, service, digest)
	}
}

// compareIdentity warns of another service or schedule under the name of the job. The tick is zero if it was found in no tick.
func (j *job) compareIdentity(tick time.Time, replica, service, digest string) {
	mine := j.identity
	if service == mine.service && digest == mine.digest {
		return
	}
	other, by := foreign.Line(service, maxName), foreign.Line(replica, maxName)
	text := "holdfast: cronlock: another service has a job of the same name, and each takes ticks from the other: use " +
		"different names or key prefixes"
	err := fmt.Errorf("holdfast: cronlock: service %q of replica %q has a job of the same name", other, by)
	if service == mine.service {
		text = "holdfast: cronlock: another replica has another schedule for this job, which is right only in a rollout"
		err = fmt.Errorf("holdfast: cronlock: replica %q has another schedule for the job", by)
	}
	const silence = time.Hour
	if elapsed(&j.mismatched, time.Now(), silence) {
		j.logger.Warn(text, "job", j.shown(), "service", foreign.Line(mine.service, maxName), "other", other,
			"replica", by)
	}
	j.incident(j.config.context, tick, IncidentMismatch, err)
}

// thisService is the default of [WithService].
var thisService = sync.OnceValue(func() string {
	name := ""
	if info, ok := debug.ReadBuildInfo(); ok && info.Path != "command-line-arguments" {
		name = info.Path
	}
	if name == "" {
		name = filepath.Base(os.Args[0])
	}
	if name = strings.Map(oneLine, name); name == "" {
		return "unknown"
	}
	return name[max(len(name)-mostService, 0):]
})

func oneLine(r rune) rune {
	if r < ' ' {
		return -1
	}
	return r
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

// The keys of a job share a hash tag: in a Cluster they lie together, and its records are a group.

func groupOf(name string) string { return "cron:{" + name + "}" }

// tickKey identifies a tick by its time on the schedule, not by when somebody came for it.
func tickKey(name string, tick time.Time) string {
	return groupOf(name) + ":at:" + tick.UTC().Format(time.RFC3339Nano)
}

// tickOf reads the tick from the key of its record, false if that is of something else.
func tickOf(name, key string) (time.Time, bool) {
	text, ok := strings.CutPrefix(key, groupOf(name)+":at:")
	if !ok {
		return time.Time{}, false
	}
	tick, err := time.Parse(time.RFC3339Nano, text)
	return tick, err == nil
}

func nowKey(name, id string) string { return groupOf(name) + ":now:" + id }

// registry is the group of the records of all jobs. A job of that name has no keys that begin with this.
const registry = "cron:{holdfast:cronlock:jobs}:job:"

func jobKey(name string) string { return registry + name }
