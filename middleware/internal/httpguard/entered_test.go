package httpguard_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestEntered: a request within a run of its key passes only while that run goes on and has its lease. What keeps the
// context of the run for longer is guarded as any other request.
func TestEntered(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	o := engine(t, rdb, core.WithTTL(time.Second))
	begin := func(user string) (httpguard.Request, *httpguard.Run) {
		req := ask(t, o, user, "a-key-of-a-request")
		run, _, conflict := o.Begin(t.Context(), req)
		if run == nil {
			t.Fatalf("conflict %v", conflict)
		}
		if !o.Entered(run.Context(), req.Key) {
			t.Error("the run does not let its own request pass")
		}
		return req, run
	}
	req, run := begin("one")
	run.Finish(httpguard.Outcome{Returned: true, Response: &httpguard.Response{Status: 200}})
	if o.Entered(context.WithoutCancel(run.Context()), req.Key) {
		t.Error("a run that has finished lets a request pass")
	}
	req, run = begin("two")
	if err := rdb.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, time.Minute, "the lease to be lost", func() bool { return run.Context().Err() != nil })
	if o.Entered(context.WithoutCancel(run.Context()), req.Key) {
		t.Error("a run that has lost its lease lets a request pass")
	}
	run.Finish(httpguard.Outcome{})
}
