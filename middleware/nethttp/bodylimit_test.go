package httplock

import (
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestBodyLimit: a guard reads as many bytes of a body as its option says. Only a guard that compares bodies refuses
// larger ones.
func TestBodyLimit(t *testing.T) {
	t.Parallel()
	locks, err := core.New(testkit.Start(t).Client())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locks.Close() }()
	small := onceSettings()
	small.BodyLimit = 7
	exclusive, err1 := newExclusive(locks.Mutex, Unscoped(), exclusiveSettings())
	once, err2 := newOnce(locks, Unscoped(), small)
	idempotent, err3 := newOnce(locks, Unscoped(), idempotentSettings())
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	for name, test := range map[string]struct {
		guard  guard
		limit  int64
		strict bool
	}{
		"Exclusive":  {exclusive.guard, 64 << 10, false},
		"Once":       {once.guard, 7, false},
		"Idempotent": {idempotent.guard, 1 << 20, true},
	} {
		if limit, strict := test.guard.BodyLimit, test.guard.StrictBody; limit != test.limit || strict != test.strict {
			t.Errorf("%s: limit %d, strict %v, want %d, %v", name, limit, strict, test.limit, test.strict)
		}
	}
}
