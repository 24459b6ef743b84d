package asynq_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
)

// TestKeysAreHashed: whatever is in a task, Redis sees a hash, another one for another key.
func TestKeysAreHashed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	values := []string{
		"a", "a\n", "{a}", "}{", "\x00", "\xff", "*1\r\n$8\r\nFLUSHALL\r\n", "'); redis.call('FLUSHALL') --",
		"holdfast:once:{a}", "1:a", strings.Repeat("x", 10<<20),
	}
	for i, value := range values {
		work := asynq.NewTaskWithHeaders(kind, []byte(value), map[string]string{"K": value})
		for name, guard := range map[string]asynq.MiddlewareFunc{
			"once by header":  asynqlock.Once(d.locks, asynqlock.ByHeader("K")),
			"once by payload": asynqlock.Once(d.locks, asynqlock.ByPayload()),
			"exclusive":       asynqlock.Exclusive(d.locks.Mutex, asynqlock.ByHeader("K")),
		} {
			if err := d.deliver(delivery("1"), work, nothing, guard); err != nil {
				t.Errorf("%s, %.20q: %v", name, value, err)
			}
		}
		if records := d.rdb.Keys(t.Context(), "holdfast:once*").Val(); len(records) != 2*(i+1) {
			t.Errorf("%.20q: %d records, want %d", value, len(records), 2*(i+1))
		}
	}
	known := regexp.MustCompile(`^holdfast:[a-z]+:\{lock:asynq:[A-Za-z0-9_:-]{1,80}\}(:[a-f0-9:-]+)?$`)
	for _, key := range d.rdb.Keys(t.Context(), "*").Val() {
		if key != "holdfast:token" && !strings.HasPrefix(key, "holdfast:client:") && !known.MatchString(key) {
			t.Errorf("key %.200q", key)
		}
	}
}

// TestRefusedPayloads: a payload that is no key is refused in a few words, which tell nothing of it.
func TestRefusedPayloads(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	long, err := json.Marshal(map[string]any{"order": []string{strings.Repeat("private", 1<<20)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, payload := range []string{string(long), strings.Repeat("[", 10<<20), `{"order` + strings.Repeat("private", 1<<20)} {
		err := d.deliver(delivery("1"), task(kind, payload), nothing, asynqlock.Once(d.locks, asynqlock.ByPayload("order")))
		if err == nil || len(err.Error()) > 1000 || strings.Contains(err.Error(), "private") {
			t.Errorf("%.20q: %.200v", payload, err)
		}
	}
}
