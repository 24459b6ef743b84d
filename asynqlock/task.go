package asynqlock

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"os"
	"strconv"
	"strings"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/internal/foreign"
)

// taskInfo is what asynq knows of a task.
type taskInfo struct {
	ID    string // unique in its queue only
	Queue string
	Type  string
	// Retried counts the failed runs, of which there may be as many as MaxRetry.
	Retried  int
	MaxRetry int
}

// last reports whether asynq archives the task if this run does not succeed, whatever the reason.
func (t taskInfo) last() bool { return t.ID != "" && t.Retried >= t.MaxRetry }

// maxShownText bounds what the log and errors show of a text of a task or a record. Producers choose these texts.
const maxShownText = 100

// shown returns such a text for the log, and quoted for an error.
func shown(text string) string { return foreign.Line(text, maxShownText) }

func quoted(text string) string { return foreign.Quote(text, maxShownText) }

type taskKey struct{}

// ContextWithTask returns a context for a handler outside an asynq server: for tests, and to make the key of a task
// that an [asynq.Inspector] has found. It uses ID, Queue, Retried and MaxRetry of info.
func ContextWithTask(ctx context.Context, info *asynq.TaskInfo) context.Context {
	if info == nil {
		info = &asynq.TaskInfo{}
	}
	return context.WithValue(ctx, taskKey{}, taskInfo{
		ID: info.ID, Queue: info.Queue, Retried: info.Retried, MaxRetry: info.MaxRetry,
	})
}

// taskOf describes the task that a handler got. The zero ID tells that ctx is not that of a handler.
func taskOf(ctx context.Context, t *asynq.Task) taskInfo {
	task, ok := ctx.Value(taskKey{}).(taskInfo)
	if !ok {
		task.ID, _ = asynq.GetTaskID(ctx)
		task.Queue, _ = asynq.GetQueueName(ctx)
		task.Retried, _ = asynq.GetRetryCount(ctx)
		task.MaxRetry, _ = asynq.GetMaxRetry(ctx)
	}
	task.Type = t.Type()
	return task
}

const (
	// maxCompactField is the longest field with which Redis keeps a small hash in its compact encoding, by its default
	// hash-max-listpack-value. One longer field makes the hash a table, which takes more than twice the memory.
	maxCompactField = 64
	// minHost is the least that is kept of host and process to keep a note compact: enough to tell pods apart.
	minHost = 12
	// maxNote is the longest note that core takes.
	maxNote = 256
	// maxLabel is the longest label that core takes.
	maxLabel = 256
)

// note tells those who read a record who runs the task: which one, and where.
func note(t taskInfo) string {
	host, _ := os.Hostname()
	return noteOf(identity(t), host+":"+strconv.Itoa(os.Getpid()))
}

// noteOf joins task and place. If that makes the note compact, the place loses its beginning: the end of a host name is
// what tells the pods of a service apart, and the process ID follows it.
func noteOf(task, place string) string {
	if room := maxCompactField - len(task) - 1; room >= minHost && len(place) > room {
		place = place[len(place)-room:]
	}
	text := task + " " + place
	return text[:min(len(text), maxNote)]
}

// label is the type of a task, of which a record has as much as it may.
func label(t taskInfo) string { return strings.ToValidUTF8(t.Type[:min(len(t.Type), maxLabel)], "") }

// identity is the name of a task, or its hash if that is long.
func identity(t taskInfo) string {
	name := t.Queue + "/" + t.ID
	if len(name) <= 128 {
		return name
	}
	digest := sha256.Sum256([]byte(name))
	return "sha256:" + base64.RawURLEncoding.EncodeToString(digest[:])
}

// sameTask reports whether a note is about that task. One that only may be counts too, as it does without ID.
func sameTask(note string, t taskInfo) bool {
	return t.ID == "" || strings.HasPrefix(note, identity(t)+" ")
}
