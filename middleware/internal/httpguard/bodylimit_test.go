package httpguard_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
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
	small := httpguard.OnceConfig()
	small.BodyLimit = 7
	exclusive, err1 := httpguard.NewExclusive(locks.Mutex, httpguard.ExclusiveConfig())
	once, err2 := httpguard.NewOnce(locks, small)
	idempotent, err3 := httpguard.NewOnce(locks, httpguard.IdempotentConfig())
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	for name, test := range map[string]struct {
		guard  interface{ BodyLimit() (int64, bool) }
		limit  int64
		strict bool
	}{
		"Exclusive":  {exclusive, 64 << 10, false},
		"Once":       {once, 7, false},
		"Idempotent": {idempotent, 1 << 20, true},
	} {
		if limit, strict := test.guard.BodyLimit(); limit != test.limit || strict != test.strict {
			t.Errorf("%s: limit %d, strict %v, want %d, %v", name, limit, strict, test.limit, test.strict)
		}
	}
}
