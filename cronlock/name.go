package cronlock

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/foreign"
)

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
