package asynqlock

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hibiken/asynq"

	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/jsonfield"
)

// KeyFunc makes the key of a task: tasks with equal keys exclude each other, or count as one. If it returns an empty
// key or an error, the task has no key, see [ErrNoKey]. Several goroutines may call it at once. Only a hash of the key
// reaches Redis, logs and hooks. A function that calls another KeyFunc passes its context on, for [ComparePayload].
type KeyFunc func(ctx context.Context, t *asynq.Task) (string, error)

// ErrNoKey says that a task lacks the parts of its key. A retry would not add them, so the task is archived, see
// [OptionalKey].
var ErrNoKey = errors.New("holdfast: asynqlock: no key in the task")

// ByTaskID makes a key of queue and task ID. It recognises a task that is redelivered, for tasks whose IDs are made by
// asynq. Two tasks that were enqueued for one thing have two IDs: see [ByPayload] and [ByHeader]. asynq allows one ID
// in two queues, which therefore are two keys.
//
// Do not use it with [Once] for periodic tasks with a fixed [asynq.TaskID], which keeps several schedulers from
// enqueuing a task twice. All runs have one ID: the first one runs, and the others are acknowledged without running
// while its record exists ([core.WithRetention]). The log warns of that. Use [Enqueue] with [ByTick], or [PerPeriod].
func ByTaskID() KeyFunc {
	return func(ctx context.Context, t *asynq.Task) (string, error) {
		task := taskOf(ctx, t)
		if task.ID == "" {
			return "", fmt.Errorf("%w: the context is not that of an asynq handler", ErrNoKey)
		}
		return join("task", task.Queue, task.ID), nil
	}
}

// ByPayload makes a key of fields of a payload in JSON: names of the outermost object ("user_id") or RFC 6901 pointers
// ("/user/id"). All fields must exist, as strings, numbers or booleans; otherwise see [ErrNoKey]. A string may be empty, if not
// all fields are. The string "1" and the number 1 make two keys, and so do 1 and 1.0.
//
// Only the fields decide whether two tasks are one: the rest of the payload may differ, see [ComparePayload].
//
// Without fields it is a key of the type and of the whole payload, byte for byte, which need not be JSON. Do not use
// that for periodic tasks that always have the same payload: see [ByTaskID].
//
// ByPayload panics if a field is no pointer.
func ByPayload(fields ...string) KeyFunc {
	pointers := make([]string, len(fields))
	for i, field := range fields {
		pointers[i] = pointer(field)
		if err := jsonfield.CheckPointer(pointers[i]); err != nil {
			panic(err)
		}
	}
	return func(ctx context.Context, t *asynq.Task) (string, error) {
		if len(pointers) == 0 {
			digest := sha256.Sum256(t.Payload())
			return join("payload", t.Type(), string(digest[:])), nil
		}
		reportSelective(ctx)
		parts, empty := []string{"fields"}, true
		for _, p := range pointers {
			value, err := jsonfield.Find(t.Payload(), p)
			if err != nil {
				return "", fmt.Errorf("%w: payload: %w", ErrNoKey, err)
			}
			parts, empty = append(parts, p, value), empty && value == "string:"
		}
		if empty {
			return "", fmt.Errorf("%w: payload: only empty strings at %q", ErrNoKey, pointers)
		}
		return join(parts...), nil
	}
}

// pointer makes a pointer of the name of a field.
func pointer(field string) string {
	if field == "" || strings.HasPrefix(field, "/") {
		return field
	}
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(field)
}

// ByHeader makes a key of a header of the task, see [asynq.NewTaskWithHeaders]: for instance "Idempotency-Key", which
// a producer repeats when it retries. Names are case-sensitive.
func ByHeader(name string) KeyFunc {
	if name == "" {
		panic("holdfast: asynqlock: ByHeader: the name is empty")
	}
	return func(_ context.Context, t *asynq.Task) (string, error) {
		value := t.Headers()[name]
		if value == "" {
			return "", fmt.Errorf("%w: header %s is empty", ErrNoKey, name)
		}
		return join("header", name, value), nil
	}
}

// ByType makes a key of the type: for [Keys], and to run one task of a type at a time.
func ByType() KeyFunc {
	return func(_ context.Context, t *asynq.Task) (string, error) { return join("type", t.Type()), nil }
}

// Keys joins keys so that no two lists of parts make the same one. If a part is missing, the whole key is missing.
func Keys(keys ...KeyFunc) KeyFunc {
	mustHave("Keys", keys...)
	return func(ctx context.Context, t *asynq.Task) (string, error) {
		parts := make([]string, len(keys))
		for i, key := range keys {
			part, err := key.of(ctx, t)
			if err != nil {
				return "", err
			}
			parts[i] = part
		}
		return join(parts...), nil
	}
}

func mustHave(what string, keys ...KeyFunc) {
	if len(keys) == 0 {
		panic("holdfast: asynqlock: " + what + ": no keys")
	}
	for _, key := range keys {
		if key == nil {
			panic("holdfast: asynqlock: " + what + ": a key is nil")
		}
	}
}

// of makes the key, or tells why there is none.
func (f KeyFunc) of(ctx context.Context, t *asynq.Task) (string, error) {
	key, err := f(ctx, t)
	switch {
	case err != nil && !errors.Is(err, ErrNoKey):
		return "", fmt.Errorf("%w: %w", ErrNoKey, err)
	case err == nil && key == "":
		return "", fmt.Errorf("%w: it is empty", ErrNoKey)
	}
	return key, err
}

// join writes the length in front of each part, so that no value can pass for the end of one and the beginning of
// another.
func join(parts ...string) string {
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(strconv.Itoa(len(part)))
		b.WriteByte(':')
		b.WriteString(part)
	}
	return b.String()
}

// split takes apart what join has made of two parts.
func split(joined string) (first, second string) {
	text, rest, _ := strings.Cut(joined, ":")
	n, _ := strconv.Atoi(text)
	n = min(n, len(rest))
	_, second, _ = strings.Cut(rest[n:], ":")
	return rest[:n], second
}

// hash returns 43 characters of base64url, the same for equal keys only.
func hash(secret []byte, key string) string {
	return base64.RawURLEncoding.EncodeToString(digest(secret, key))
}

// digest returns the SHA-256 of a text, or its HMAC if there is a secret.
func digest(secret []byte, text string) []byte {
	if len(secret) == 0 {
		sum := sha256.Sum256([]byte(text))
		return sum[:]
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// PerPeriod makes another key of a key in each period: for instance once a day for each user, however often the task
// is enqueued.
//
// Periods are those of the worker's clock when the task arrives. They count from 1970 in UTC, and each begins earlier
// than the multiple of its length: by 30 s, or by a quarter of a period shorter than 2 min. A day lasts from 23:59:30
// to 23:59:30 UTC. An hour begins 30 s before the full hour, a minute 15 s before the full minute.
//
// Schedulers put their ticks at full minutes. So all workers whose clocks differ by less than 30 s put a task that
// arrives around a tick into the same period. The same holds for a task that waits in its queue for up to a period
// less 30 s. With periods that begin at full minutes, some runs would count as the run of the period before, and be
// lost.
//
// A task that arrives after the next period has begun belongs to that one. The next task of that period is then
// acknowledged without running, if the key is one of [Once]. Use [Enqueue] and [ByTick] where that matters: their key
// is the tick, whenever the task arrives.
//
// [Guard.Peek], [Guard.Forget] and [Guard.Resolve] reach the record of the period in which you call them. PerPeriod
// panics if the period is shorter than 1 ms, as a number without a unit is.
//
// A task that is redelivered in the next period runs again. For tasks with IDs of their own, put Once(locks,
// ByTaskID()) in front, so that a period counts for other tasks only.
func PerPeriod(key KeyFunc, period time.Duration) KeyFunc {
	mustHave("PerPeriod", key)
	if period < guards.ShortestWait {
		panic(fmt.Sprintf("holdfast: asynqlock: PerPeriod: the period is %v: at least %v is needed%s", period, guards.ShortestWait,
			guards.UnitHint(period)))
	}
	return func(ctx context.Context, t *asynq.Task) (string, error) {
		reportSelective(ctx)
		part, err := key.of(ctx, t)
		if err != nil {
			return "", err
		}
		n := periodAt(time.Now(), period)
		return join("period", period.String(), strconv.FormatInt(n, 10), part), nil
	}
}

// maxPeriodLead bounds how much earlier a period begins than the multiple of its length. It is half a minute because
// most schedules have ticks at full minutes, from which periods so begin as far away as possible. It is the default of
// cronlock.WithMaxSkew too: clocks that differ by more are broken.
const maxPeriodLead = 30 * time.Second

// periodAt returns the number of the period at an instant.
func periodAt(at time.Time, period time.Duration) int64 {
	lead := min(period/4, maxPeriodLead)
	n, rest := divmod(at.UnixNano(), int64(period))
	if rest >= int64(period-lead) {
		n++
	}
	return n
}

// divmod rounds down, so that no period around 1970 has twice the length.
func divmod(a, b int64) (quotient, rest int64) {
	quotient, rest = a/b, a%b
	if rest < 0 {
		quotient, rest = quotient-1, rest+b
	}
	return quotient, rest
}

// payloadPolicy says whether two tasks with one key must have the same payload.
type payloadPolicy int

const (
	payloadByKey    payloadPolicy = iota // compared unless the key function says what makes two tasks one
	payloadIgnored                       // see [IgnorePayload]
	payloadCompared                      // see [ComparePayload]
)

// keyTraits is what a key function reports to its guard, through the context of the call. It is a context value because
// a [KeyFunc] returns the key alone, and because it has to pass through [Keys] and functions of the user.
type keyTraits struct {
	// selective says that the key names what makes two tasks one, so that the rest of the payload may differ.
	selective bool
}

type keyTraitsKey struct{}

// withTraits returns a context in which key functions report to traits.
func withTraits(ctx context.Context, traits *keyTraits) context.Context {
	return context.WithValue(ctx, keyTraitsKey{}, traits)
}

// reportSelective tells the guard that calls a key function that its key is selective, see [keyTraits].
func reportSelective(ctx context.Context) {
	if traits, ok := ctx.Value(keyTraitsKey{}).(*keyTraits); ok {
		traits.selective = true
	}
}

// comparesPayload reports whether the record of a task is compared with its payload.
func (g *guard) comparesPayload(traits keyTraits) bool {
	switch g.payload {
	case payloadIgnored:
		return false
	case payloadCompared:
		return true
	}
	return !traits.selective
}

// mismatch names the task that has another payload than the first one with its key, and the option that decides.
// Payload and key are left out: asynq stores the error, and keys are secret.
func (v *visit) mismatch(err error) error {
	remedy := "if the payloads may differ, make the key with ByPayload(fields...) or pass IgnorePayload()"
	if v.payload == payloadCompared {
		remedy = "ComparePayload() refuses that"
	}
	return fmt.Errorf("holdfast: asynqlock: task %s of type %s in queue %s: another payload than that of the first task "+
		"with its key: %s: %w", quoted(v.task.ID), quoted(v.task.Type), quoted(v.task.Queue), remedy, err)
}

// payloadOption makes an option of a policy.
func payloadOption(option string, policy payloadPolicy) Option {
	return newOption(option, func(c *config) {
		if c.payload != payloadByKey && c.payload != policy {
			c.refuse("%s: IgnorePayload and ComparePayload contradict each other", option)
		}
		c.payload = policy
	})
}

// fingerprint is what is compared of tasks with one key: the beginning of a digest, since it is kept in each record. 16
// bytes are equal for two payloads by accident as rarely as two UUIDs are.
func fingerprint(secret []byte, t *asynq.Task) []byte {
	const size = 16
	return digest(secret, join(t.Type(), string(t.Payload())))[:size]
}
