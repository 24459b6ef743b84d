package core_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestNilFunctionIsRefused before Redis is asked: it would panic with the lock held, and leave a failed run behind.
func TestNilFunctionIsRefused(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := newClient(t, server.Client())
	lock := locks.Mutex("name")
	_, once := locks.Once("name").Do(t.Context(), nil)
	for what, err := range map[string]error{
		"Do":             core.Do(t.Context(), lock, nil),
		"Do of a Multi":  core.Do(t.Context(), core.Multi(lock, locks.Mutex("other")), nil),
		"TryDo":          core.TryDo(t.Context(), lock, nil),
		"Once.Do":        once,
		"Election.Run":   locks.Election("name").Run(t.Context(), nil),
		"Election.TryDo": locks.Election("name").TryDo(t.Context(), nil),
	} {
		t.Run(what, func(t *testing.T) { wantInvalid(t, err, core.ErrInvalidOption, "the function is nil") })
	}
	never := func(context.Context) error { t.Error("the function ran"); return nil }
	for what, err := range map[string]error{
		"Do": core.Do(t.Context(), nil, never), "TryDo": core.TryDo(t.Context(), nil, never),
	} {
		t.Run(what+" without a Locker", func(t *testing.T) { wantInvalid(t, err, core.ErrInvalidOption, "the Locker is nil") })
	}
	if n := server.CommandStats()["evalsha"].Calls; n != 0 {
		t.Errorf("%d scripts ran", n)
	}
}
