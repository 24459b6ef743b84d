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

// note is what a record of a run says about its runner.
func (i identity) note(replica string) string {
	return strings.Join([]string{replica, i.service, i.digest}, "\n")
}

// readNote returns no service if the note has none.
func readNote(note string) (replica, service, digest string) {
	replica, rest, _ := strings.Cut(note, "\n")
	service, digest, _ = strings.Cut(rest, "\n")
	return replica, service, digest
}

// Mismatch is another use of a job's name in the same Redis, under the same key prefix.
type Mismatch struct {
	// Job is the name of the job.
	Job string
	// Service is the service that has used the name. If it is that of this replica, the schedules differ, as in a
	// rollout that changes them.
	Service string
	// Replica is the replica of that service, if known.
	Replica string
	// SameService reports whether only the schedules differ.
	SameService bool
}

// compare looks whether the record of a tick that another replica has claimed is that of the same job.
func (j *job) compare(tick time.Time, err error) {
	var completed *core.CompletedError
	switch {
	case errors.As(err, &completed):
		j.compareNote(completed.Record.Note)
	case errors.Is(err, core.ErrInProgress) && elapsed(&j.compared, time.Now(), compareInterval):
		ctx, cancel := context.WithTimeout(j.config.context, leastPatience)
		defer cancel()
		if record, err := j.locks.Once(tickKey(j.name, tick)).Peek(ctx); err == nil {
			j.compareNote(record.Note)
		}
	}
}

// compareInterval bounds how often a record is read only to compare identities.
const compareInterval = 10 * time.Minute

func (j *job) compareNote(note string) {
	if replica, service, digest := readNote(note); service != "" {
		j.compareIdentity(replica, service, digest)
	}
}

// compareIdentity warns of another service or schedule under the name of the job.
func (j *job) compareIdentity(replica, service, digest string) {
	mine := j.identity
	if service == mine.service && digest == mine.digest {
		return
	}
	same := service == mine.service
	const silence = time.Hour
	if elapsed(&j.mismatched, time.Now(), silence) {
		text := "holdfast: cronlock: another service has a job of the same name, and each takes ticks from the other: use " +
			"different names or key prefixes"
		if same {
			text = "holdfast: cronlock: another replica has another schedule for this job, which is right only in a rollout"
		}
		j.config.logger.Warn(text, "job", j.shown(), "service", foreign.Line(mine.service, maxName),
			"other", foreign.Line(service, maxName), "replica", foreign.Line(replica, maxName))
	}
	if j.config.hooks.Mismatched != nil {
		j.aside(func() {
			j.config.hooks.Mismatched(Mismatch{Job: j.name, Service: service, Replica: replica, SameService: same})
		})
	}
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
