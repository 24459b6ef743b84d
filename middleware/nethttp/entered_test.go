package httplock

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestEntered: a request within a run of its key passes only while that run continues and has its lease. What keeps the
// context of the run for longer is guarded as any other request.
func TestEntered(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	o := newEngine(t, rdb, core.WithTTL(time.Second))
	// passes runs a request as it came from ctx, and reports whether it was let pass as one that is inside its own run.
	passes := func(ctx context.Context, req item) (passed bool) {
		h := answering("")
		h.Pass = func(context.Context) { passed = true }
		_, _ = doOnce(ctx, o, req, h)
		return passed
	}
	var late context.Context
	run := func(user string, then func()) item {
		req, ran := ask(t, o, user, "a-key-of-a-request"), false
		doOnce(t.Context(), o, req, handlers{Run: func(ctx context.Context) Handled {
			late, ran = ctx, true
			if !passes(ctx, req) {
				t.Error("the run does not let its own request pass")
			}
			then()
			return Handled{Returned: true, Response: &Response{Status: 200}}
		}})
		if !ran {
			t.Fatal("did not run")
		}
		return req
	}
	req := run("one", func() {})
	if passes(context.WithoutCancel(late), req) {
		t.Error("a run that has finished lets a request pass")
	}
	run("two", func() {
		if err := rdb.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, time.Minute, "the lease to be lost", func() bool { return late.Err() != nil })
		if passes(context.WithoutCancel(late), ask(t, o, "two", "a-key-of-a-request")) {
			t.Error("a run that has lost its lease lets a request pass")
		}
	})
}
