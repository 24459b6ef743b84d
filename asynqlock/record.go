package asynqlock

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"os"
	"strconv"
	"strings"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
)

// prefix keeps the locks and records of tasks apart from others.
const prefix = "asynq:"

func recordName(hash string) string { return prefix + hash }

// recordHash makes the hash of a key of Once. The type is part of it: what one task has done says nothing about another
// kind of task for the same order.
func recordHash(secret []byte, t *asynq.Task, key string) string {
	return hash(secret, join(t.Type(), key))
}

// Peek reads the record of a task, which has [core.StateNone] if there is none. The task is what an [asynq.Inspector]
// returns. Errors are [ErrNoKey] and those of [core.Once.Peek].
func (g *Guard) Peek(ctx context.Context, info *asynq.TaskInfo) (core.Record, error) {
	once, err := g.recordOf(ctx, info)
	if err != nil {
		return core.Record{}, err
	}
	return once.Peek(ctx)
}

// Resolve records that a task has taken effect: an operator has found out how a run of unknown outcome ended. The next
// delivery is acknowledged with that result, which may be nil. It applies to the record that Peek returned for the task.
// Errors are [ErrNoKey] and those of [core.Once.Resolve]: [core.ErrChanged] if the record has changed since, and
// [core.ErrInProgress] while the task runs.
func (g *Guard) Resolve(ctx context.Context, info *asynq.TaskInfo, seen core.Record, result []byte) error {
	once, err := g.recordOf(ctx, info)
	if err != nil {
		return err
	}
	return once.Resolve(ctx, seen, result)
}

// Forget deletes the record of a task, so that the task runs when it is delivered again: an operator has found out
// that it took no effect. It applies to the record that Peek returned for the task. Errors are [ErrNoKey] and those of
// [core.Once.Forget]: [core.ErrChanged] if the record has changed since, and [core.ErrInProgress] while the task runs.
func (g *Guard) Forget(ctx context.Context, info *asynq.TaskInfo, seen core.Record) error {
	once, err := g.recordOf(ctx, info)
	if err != nil {
		return err
	}
	return once.Forget(ctx, seen)
}

// recordOf returns the Once of a task.
func (g *Guard) recordOf(ctx context.Context, info *asynq.TaskInfo) (*core.Once, error) {
	switch {
	case g == nil || g.once == nil:
		return nil, errZeroGuard
	case info == nil:
		return nil, errNoTask
	}
	t := asynq.NewTaskWithHeaders(info.Type, info.Payload, info.Headers)
	v, err := g.once.arrive(ContextWithTask(ctx, info), t)
	if err != nil {
		return nil, err
	}
	return g.once.of(v), nil
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
