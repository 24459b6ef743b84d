package asynq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestKeyless: a task without key would never have one, so it is archived and says why.
func TestKeyless(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.serve(func(context.Context, *asynq.Task) error {
		s.effects.begin("")
		s.effects.end("", true)
		return nil
	}, asynqlock.Once(s.locks, asynqlock.ByPayload("user")))
	s.enqueue(receipt("7"))
	testkit.Eventually(t, within, "the task to be archived", func() bool { return len(s.archived()) == 1 })
	if got := s.archived()[0]; got.Retried != 0 || !strings.Contains(got.LastErr, asynqlock.ErrNoKey.Error()) {
		t.Errorf("retried %d times, %s", got.Retried, got.LastErr)
	}
	s.effects.want(t, "", 0, 0)
}

// TestOptionalKey: a task without key runs unguarded, also beside another one, and leaves nothing.
func TestOptionalKey(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	key, none := asynqlock.ByHeader("K"), task(kind, "")
	for name, guard := range map[string]asynq.MiddlewareFunc{
		"once":      asynqlock.Once(d.locks, key, asynqlock.OptionalKey()),
		"exclusive": asynqlock.Exclusive(d.locks.Mutex, key, asynqlock.OptionalKey()),
	} {
		first := d.occupy(delivery("1"), none, guard)
		if err := d.deliver(delivery("2"), none, nothing, guard); err != nil {
			t.Errorf("%s: the second: %v", name, err)
		}
		if core.KeyHash(first.ctx) != "" || !errors.Is(core.Complete(first.ctx), core.ErrNotGuarded) {
			t.Errorf("%s: it is guarded", name)
		}
		if err := first.release(); err != nil {
			t.Errorf("%s: the first: %v", name, err)
		}
	}
	if keys := d.rdb.Keys(t.Context(), "*").Val(); len(keys) > 0 {
		t.Errorf("left %q", keys)
	}
	fails := func(context.Context, *asynq.Task) (string, error) { return "", errors.New("no such order") }
	err := d.deliver(delivery("3"), none, mustNotRun(t, "a key that is not known"), asynqlock.Once(d.locks, fails, asynqlock.OptionalKey()))
	if !errors.Is(err, asynqlock.ErrNoKey) || !errors.Is(err, asynq.SkipRetry) {
		t.Errorf("a key function that fails: %v", err)
	}
	panics := func(context.Context, *asynq.Task) (string, error) { panic("no such order") }
	for _, key := range []asynqlock.KeyFunc{panics, asynqlock.Keys(asynqlock.ByType(), panics)} {
		err := d.deliver(delivery("4"), none, mustNotRun(t, "a key that is not known"), asynqlock.Once(d.locks, key, asynqlock.OptionalKey()))
		if !errors.Is(err, asynqlock.ErrNoKey) || !errors.Is(err, asynq.SkipRetry) {
			t.Errorf("a key function that panics: %v", err)
		}
	}
}

// TestTypesAndKeys: the same key means another thing for another type, but the same resource.
func TestTypesAndKeys(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	order := asynqlock.ByPayload("order")
	once, exclusive := asynqlock.Once(d.locks, order), asynqlock.Exclusive(d.locks.Mutex, order)
	mail, print := task("mail", `{"order":7}`), task("print", `{"order":7}`)

	busy := d.occupy(delivery("1"), mail, once)
	if err := d.deliver(delivery("2"), print, nothing, once); err != nil {
		t.Errorf("Once, another type: %v", err)
	}
	wantDeferred(t, d.deliver(delivery("3"), mail, nothing, once), core.ErrInProgress)
	if err := busy.release(); err != nil {
		t.Error(err)
	}
	busy = d.occupy(delivery("4"), mail, exclusive)
	wantDeferred(t, d.deliver(delivery("5"), print, nothing, exclusive), core.ErrNotAcquired)
	if err := busy.release(); err != nil {
		t.Error(err)
	}
}

// TestKeySecret: another secret makes other hashes, and nobody without the secret can make them.
func TestKeySecret(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	secret := []byte("0123456789abcdef")
	var hashes []string
	for _, opts := range [][]asynqlock.Option{
		nil, {asynqlock.WithKeySecret(secret)}, {asynqlock.WithKeySecret([]byte("0123456789abcdeg"))},
	} {
		busy := d.occupy(delivery("1"), receipt("7"), asynqlock.Once(d.locks, asynqlock.ByTaskID(), opts...))
		hashes = append(hashes, core.KeyHash(busy.ctx))
		if err := busy.release(); err != nil {
			t.Error(err)
		}
	}
	if len(hashes[0]) != 43 || hashes[0] == hashes[1] || hashes[1] == hashes[2] || hashes[0] == hashes[2] {
		t.Errorf("hashes %q", hashes)
	}
	again := asynqlock.Once(d.locks, asynqlock.ByTaskID(), asynqlock.WithKeySecret(secret))
	clear(secret) // the guard has one of its own
	if err := d.deliver(delivery("1"), receipt("7"), func(context.Context, *asynq.Task) error {
		return errors.New("it runs again")
	}, again); err != nil {
		t.Errorf("the same secret: %v", err)
	}
}

// TestKeysAreSecret: nothing of a key or payload is in Redis, logs, hooks or errors, whatever happens to tasks.
func TestKeysAreSecret(t *testing.T) {
	t.Parallel()
	const secret = "ada@example.com"
	var log diary
	d, hooks := listening(t, core.WithLogger(log.logger()))
	header := asynqlock.ByHeader(secret)
	whole := asynqlock.Keys(asynqlock.ByPayload("mail"), asynqlock.ByPayload(), asynqlock.ByHeader("M"))
	once := asynqlock.Once(d.locks, asynqlock.ByPayload("mail"),
		core.WithFailurePolicy(core.HoldFailures), asynqlock.ComparePayload(true))
	guards := []asynq.MiddlewareFunc{
		asynqlock.Once(d.locks, whole),
		asynqlock.Exclusive(d.locks.Fair, asynqlock.ByPayload("mail")), once,
	}
	mail := func(more string) *asynq.Task {
		return asynq.NewTaskWithHeaders(kind, []byte(`{"mail":"`+secret+`"`+more+`}`), map[string]string{"M": secret})
	}
	var errs []error
	busy := d.occupy(delivery("1"), mail(""), guards...)
	dump(t, d.rdb, &log)
	errs = append(errs,
		d.deliver(delivery("2"), mail(""), nothing, guards...), // busy
		d.deliver(delivery("3"), mail(`,"x":1`), nothing, once),
		d.deliver(delivery("4"), mail(""), nothing, guards[1]),
		d.deliver(delivery("5"), mail(""), nothing, asynqlock.Once(d.locks, asynqlock.ByPayload("/mail/x"))))
	d.locks.ForceUnlock(t.Context(), "asynq:"+core.KeyHash(busy.ctx))
	errs = append(errs, busy.release(),
		d.deliver(delivery("6"), mail(""), nothing, once),
		d.deliver(delivery("7"), mail(`,"x":1`), nothing, once), // another payload
		d.deliver(delivery("8"), mail(""), nothing, asynqlock.Once(d.locks, header)))
	dump(t, d.rdb, &log)
	if _, err := fmt.Fprintln(&log, hooks.text.String(), errors.Join(errs...)); err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "header "+secret+" is empty") {
			continue // names of headers are in the program
		}
		if strings.Contains(line, "ada@") || strings.Contains(line, "@example") {
			t.Errorf("told: %s", line)
		}
	}
	if !strings.Contains(log.String(), "core.NotRun") || !strings.Contains(log.String(), "{lock:asynq:") {
		t.Errorf("saw too little: %s", log.String())
	}
}

// dump writes all that Redis has.
func dump(t *testing.T, rdb *redis.Client, to *diary) {
	t.Helper()
	for _, key := range rdb.Keys(t.Context(), "*").Val() {
		var value any
		switch kind := rdb.Type(t.Context(), key).Val(); kind {
		case "hash":
			value = rdb.HGetAll(t.Context(), key).Val()
		case "zset":
			value = rdb.ZRange(t.Context(), key, 0, -1).Val()
		case "string":
			value = rdb.Get(t.Context(), key).Val()
		case "none": // it has expired
		default:
			t.Errorf("%s is a %s", key, kind)
		}
		if _, err := fmt.Fprintln(to, key, value); err != nil {
			t.Error(err)
		}
	}
}
