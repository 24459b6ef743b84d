package asynq_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
)

// seen is a task as it comes to a key function.
type seen struct {
	id, queue string
	task      *asynq.Task
}

func (s seen) key(t *testing.T, f asynqlock.KeyFunc) (string, error) {
	t.Helper()
	ctx := t.Context()
	if s.id != "" {
		ctx = asynqlock.ContextWithTask(ctx, &asynq.TaskInfo{ID: s.id, Queue: s.queue})
	}
	return f(ctx, s.task)
}

func task(kind, payload string) *asynq.Task { return asynq.NewTask(kind, []byte(payload)) }

func headed(name, value string) *asynq.Task {
	return asynq.NewTaskWithHeaders(kind, nil, map[string]string{name: value})
}

func fixed(key string) asynqlock.KeyFunc {
	return func(context.Context, *asynq.Task) (string, error) { return key, nil }
}

// TestKeysTellTasksApart: what makes one thing and what makes two.
func TestKeysTellTasksApart(t *testing.T) {
	t.Parallel()
	order, user := asynqlock.ByPayload("order"), asynqlock.ByPayload("/user/id", "order")
	whole := asynqlock.ByPayload()
	for name, test := range map[string]struct {
		key  asynqlock.KeyFunc
		a, b seen
		same bool
	}{
		"one ID":            {asynqlock.ByTaskID(), seen{"1", "a", task("x", "p")}, seen{"1", "a", task("y", "q")}, true},
		"two IDs":           {asynqlock.ByTaskID(), seen{"1", "a", task("x", "")}, seen{"2", "a", task("x", "")}, false},
		"two queues":        {asynqlock.ByTaskID(), seen{"1", "a", task("x", "")}, seen{"1", "b", task("x", "")}, false},
		"queue or ID":       {asynqlock.ByTaskID(), seen{"b1", "a", task("x", "")}, seen{"1", "ab", task("x", "")}, false},
		"one payload":       {whole, seen{task: task("x", "no json")}, seen{task: task("x", "no json")}, true},
		"two payloads":      {whole, seen{task: task("x", `{"a":1}`)}, seen{task: task("x", `{"a": 1}`)}, false},
		"two types":         {whole, seen{task: task("x", "p")}, seen{task: task("y", "p")}, false},
		"one field":         {order, seen{task: task("x", `{"order":7,"a":1}`)}, seen{task: task("y", `{"a":2, "order": 7}`)}, true},
		"two values":        {order, seen{task: task("x", `{"order":7}`)}, seen{task: task("x", `{"order":8}`)}, false},
		"text or number":    {order, seen{task: task("x", `{"order":7}`)}, seen{task: task("x", `{"order":"7"}`)}, false},
		"1 or 1.0":          {order, seen{task: task("x", `{"order":1}`)}, seen{task: task("x", `{"order":1.0}`)}, false},
		"one escaped":       {order, seen{task: task("x", `{"order":"é"}`)}, seen{task: task("x", `{"order":"\u00e9"}`)}, true},
		"two fields":        {user, seen{task: task("x", `{"user":{"id":1},"order":23}`)}, seen{task: task("x", `{"user":{"id":12},"order":3}`)}, false},
		"one header":        {asynqlock.ByHeader("K"), seen{task: headed("K", "v")}, seen{task: headed("K", "v")}, true},
		"two headers":       {asynqlock.ByHeader("K"), seen{task: headed("K", "v")}, seen{task: headed("K", "V")}, false},
		"one type":          {asynqlock.ByType(), seen{task: task("x", "p")}, seen{task: task("x", "q")}, true},
		"types":             {asynqlock.ByType(), seen{task: task("x", "p")}, seen{task: task("y", "p")}, false},
		"type and order":    {asynqlock.Keys(asynqlock.ByType(), order), seen{task: task("x", `{"order":7}`)}, seen{task: task("y", `{"order":7}`)}, false},
		"type and order, =": {asynqlock.Keys(asynqlock.ByType(), order), seen{task: task("x", `{"order":7}`)}, seen{task: task("x", `{"order":7, "a":1}`)}, true},
	} {
		a, errA := test.a.key(t, test.key)
		b, errB := test.b.key(t, test.key)
		if err := errors.Join(errA, errB); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if (a == b) != test.same {
			t.Errorf("%s: %q and %q, want the same: %v", name, a, b, test.same)
		}
	}
}

// TestKeyFunctionsDiffer: two ways to make a key of one value are not taken for each other.
func TestKeyFunctionsDiffer(t *testing.T) {
	t.Parallel()
	s := seen{"1", "a", asynq.NewTaskWithHeaders("1", []byte(`{"k":"1"}`), map[string]string{"k": "1"})}
	var keys []string
	for _, f := range []asynqlock.KeyFunc{
		asynqlock.ByTaskID(), asynqlock.ByPayload(), asynqlock.ByPayload("k"), asynqlock.ByPayload("k", "k"),
		asynqlock.ByHeader("k"), asynqlock.ByType(), asynqlock.Keys(asynqlock.ByType()),
		asynqlock.Keys(asynqlock.ByType(), asynqlock.ByHeader("k")), asynqlock.Keys(asynqlock.ByHeader("k"), asynqlock.ByType()),
		asynqlock.PerPeriod(asynqlock.ByType(), time.Hour), asynqlock.PerPeriod(asynqlock.ByType(), 2*time.Hour),
	} {
		key, err := s.key(t, f)
		if err != nil || slices.Contains(keys, key) {
			t.Errorf("%q, %v, beside %q", key, err, keys)
		}
		keys = append(keys, key)
	}
}

// TestNoKey: a task lacks it, each time.
func TestNoKey(t *testing.T) {
	t.Parallel()
	broken := func(context.Context, *asynq.Task) (string, error) { return "", errors.New("no such user") }
	for name, test := range map[string]struct {
		key  asynqlock.KeyFunc
		task *asynq.Task
	}{
		"no asynq":      {asynqlock.ByTaskID(), task("x", "")},
		"no JSON":       {asynqlock.ByPayload("order"), task("x", "order=7")},
		"no field":      {asynqlock.ByPayload("order"), task("x", `{"Order":7}`)},
		"empty strings": {asynqlock.ByPayload("order", "user"), task("x", `{"order":"","user":""}`)},
		"half a pair":   {asynqlock.ByPayload("order"), task("x", `{"order":"\ud800"}`)},
		"null":          {asynqlock.ByPayload("order"), task("x", `{"order":null}`)},
		"an object":     {asynqlock.ByPayload("order"), task("x", `{"order":{}}`)},
		"a list":        {asynqlock.ByPayload("order"), task("x", `{"order":[7]}`)},
		"one of two":    {asynqlock.ByPayload("order", "user"), task("x", `{"order":7}`)},
		"no header":     {asynqlock.ByHeader("K"), task("x", "")},
		"empty header":  {asynqlock.ByHeader("K"), headed("K", "")},
		"other case":    {asynqlock.ByHeader("Key"), headed("key", "v")},
		"a part":        {asynqlock.Keys(asynqlock.ByType(), asynqlock.ByHeader("K")), task("x", "")},
		"an empty part": {asynqlock.Keys(asynqlock.ByType(), fixed("")), task("x", "")},
		"in a period":   {asynqlock.PerPeriod(asynqlock.ByHeader("K"), time.Hour), task("x", "")},
		"an empty one":  {asynqlock.PerPeriod(fixed(""), time.Hour), task("x", "")},
	} {
		if key, err := test.key(t.Context(), test.task); !errors.Is(err, asynqlock.ErrNoKey) || key != "" {
			t.Errorf("%s: %q, %v", name, key, err)
		}
	}
	_, err := asynqlock.Keys(broken)(t.Context(), task("x", ""))
	if !errors.Is(err, asynqlock.ErrNoKey) || !strings.Contains(err.Error(), "no such user") {
		t.Errorf("one that fails: %v", err)
	}
}

// TestKeysThatMakeNoSense: the program does not start.
func TestKeysThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for want, fn := range map[string]func(){
		"Keys: no key functions":           func() { asynqlock.Keys() },
		"Keys: key function 2 is nil":      func() { asynqlock.Keys(asynqlock.ByType(), nil) },
		"PerPeriod: key function 1 is nil": func() { asynqlock.PerPeriod(nil, time.Hour) },
		"PerPeriod: the period is 0s":      func() { asynqlock.PerPeriod(asynqlock.ByType(), 0) },
		"PerPeriod: the period is 86.4µs: at least 1ms is needed; is the unit missing": func() {
			asynqlock.PerPeriod(asynqlock.ByType(), 86400)
		},
		"ByHeader: the name is empty": func() { asynqlock.ByHeader("") },
		"~2":                          func() { asynqlock.ByPayload("/a~2") },
	} {
		if got := panicOf(fn); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestFieldsAndPointers: a name is a name whatever is in it, unless it begins with a slash.
func TestFieldsAndPointers(t *testing.T) {
	t.Parallel()
	for field, payload := range map[string]string{
		"a/b":      `{"a/b":7}`,
		"a~b":      `{"a~b":7}`,
		"/a/b":     `{"a":{"b":7}}`,
		"/a~1b":    `{"a/b":7}`,
		"/items/1": `{"items":[6,7]}`,
	} {
		got, err := asynqlock.ByPayload(field)(t.Context(), task("x", payload))
		other, otherErr := asynqlock.ByPayload(field)(t.Context(), task("x", strings.Replace(payload, "7", "8", 1)))
		if err != nil || otherErr != nil || got == other {
			t.Errorf("%s of %s: %q, %v; another value: %q, %v", field, payload, got, err, other, otherErr)
		}
	}
}

// TestPerPeriod: a period is the same on all servers, and begins 30 s before midnight.
func TestPerPeriod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // it begins at midnight in UTC
		daily := asynqlock.PerPeriod(asynqlock.ByType(), 24*time.Hour)
		key := func(kind string) string {
			key, err := daily(t.Context(), task(kind, ""))
			if err != nil {
				t.Error(err)
			}
			return key
		}
		first := key("x")
		if key("y") == first {
			t.Error("two types have one key")
		}
		time.Sleep(24*time.Hour - 30*time.Second - time.Nanosecond)
		if key("x") != first {
			t.Error("another key at the end of the day")
		}
		time.Sleep(time.Nanosecond)
		if key("x") == first {
			t.Error("the same key on the next day")
		}
	})
}

// FuzzKeys cuts two texts into parts and compares: the keys are the same if and only if the parts are.
func FuzzKeys(f *testing.F) {
	f.Add("ab", "ab", uint8(1), uint8(2))
	f.Add("1:a1:b", "1:a1:b", uint8(3), uint8(6))
	f.Add("3:1:a", "1:a", uint8(5), uint8(3))
	f.Add("a:b", "ab", uint8(3), uint8(1))
	f.Add("a\x00b", "a\x00b", uint8(1), uint8(3))
	f.Fuzz(func(t *testing.T, a, b string, cutA, cutB uint8) {
		partsA, partsB := cut(a, int(cutA)), cut(b, int(cutB))
		if len(partsA) == 0 || len(partsB) == 0 {
			t.Skip("no keys")
		}
		keyA, errA := joined(partsA)(t.Context(), nil)
		keyB, errB := joined(partsB)(t.Context(), nil)
		if errA != nil || errB != nil || (keyA == keyB) != slices.Equal(partsA, partsB) {
			t.Errorf("%q makes %q, %v; %q makes %q, %v", partsA, keyA, errA, partsB, keyB, errB)
		}
	})
}

// cut makes parts of size bytes.
func cut(text string, size int) (parts []string) {
	if size == 0 {
		return nil
	}
	for part := range slices.Chunk([]byte(text), size) {
		parts = append(parts, string(part))
	}
	return parts
}

func joined(parts []string) asynqlock.KeyFunc {
	keys := make([]asynqlock.KeyFunc, len(parts))
	for i, part := range parts {
		keys[i] = fixed(part)
	}
	return asynqlock.Keys(keys...)
}

// TestByPayloadOfStrings: an empty string is not a field that is missing, and U+FFFD is a character like any other.
func TestByPayloadOfStrings(t *testing.T) {
	t.Parallel()
	key := asynqlock.ByPayload("tenant", "order")
	seen := make(map[string]string)
	for _, payload := range []string{
		`{"tenant":"","order":"7"}`, `{"tenant":"7","order":""}`, `{"tenant":"\ufffd","order":"7"}`, `{"tenant":"x","order":"7"}`,
	} {
		k, err := key(t.Context(), asynq.NewTask("x", []byte(payload)))
		if err != nil || seen[k] != "" {
			t.Errorf("%s: %v, the key of %q", payload, err, seen[k])
		}
		seen[k] = payload
	}
	if _, err := key(t.Context(), asynq.NewTask("x", []byte(`{"order":"7"}`))); !errors.Is(err, asynqlock.ErrNoKey) {
		t.Errorf("without a field: %v", err)
	}
}
