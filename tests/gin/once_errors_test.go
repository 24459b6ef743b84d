package gin_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

var errDatabase = errors.New("the database is away")

// render is a service's renderer of c.Errors. It answers 502 with what the handler has not answered.
func render(c *gin.Context) {
	c.Next()
	if len(c.Errors) > 0 && !c.Writer.Written() {
		c.String(http.StatusBadGateway, "sorry")
	}
}

// A first run that has failed does not count, unless failures are held, wherever the failure is made an answer.
func TestFailedRun(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	report := func(c *gin.Context) { _ = c.Error(errDatabase) }
	failure := func(*gin.Context) { panic("handler") }
	for name, test := range map[string]struct {
		outside, inside, fail gin.HandlerFunc
		status                int
		body                  string
		header                bool // the handler's fields are sent
	}{
		"error, renderer outside":   {render, nextOnly, report, http.StatusBadGateway, "sorry", true},
		"error, renderer inside":    {nextOnly, render, report, http.StatusBadGateway, "sorry", true},
		"error, no renderer":        {nextOnly, nextOnly, report, http.StatusOK, "", true},
		"panic, recovery outside":   {recovery(), nextOnly, failure, http.StatusInternalServerError, "", false},
		"panic, recovery inside":    {nextOnly, recovery(), failure, http.StatusInternalServerError, "", true},
		"abort with error":          {render, nextOnly, abortWith(503), 503, "", true},
		"panic after written":       {recovery(), nextOnly, writeAndPanic, http.StatusInternalServerError, "", false},
		"panic after reported":      {recovery(), nextOnly, reportAndPanic, http.StatusInternalServerError, "", false},
		"error, with status":        {render, nextOnly, reportStatus, http.StatusBadGateway, "sorry", true},
		"written, error afterwards": {render, nextOnly, writeAndReport, 500, "written", true},
	} {
		for policy, held := range map[string]bool{"": false, ", held": true} {
			opts := []httplock.Option{}
			if held {
				opts = append(opts, core.WithFailurePolicy(core.HoldFailures))
			}
			for kind, guard := range recording(locks, opts...) {
				t.Run(kind+", "+name+policy, func(t *testing.T) {
					t.Parallel()
					srv := serve(t, router(test.outside, guard, test.inside, failing(test.fail)))
					first := order(t, srv, "k")
					first.wantRun(t, test.status)
					if first.body != test.body || (first.header.Get("X-Handler") == "1") != test.header {
						t.Errorf("first answer %q, %v", first.body, first.header)
					}
					if held {
						order(t, srv, "k").wantRefusal(t, http.StatusConflict, httplock.CodeOutcomeUnknown)
						return
					}
					order(t, srv, "k").wantRun(t, http.StatusCreated)
					order(t, srv, "k").wantReplay(t, http.StatusCreated, "created")
				})
			}
		}
	}
}

func abortWith(status int) gin.HandlerFunc {
	return func(c *gin.Context) { _ = c.AbortWithError(status, errDatabase) }
}

func writeAndPanic(c *gin.Context) {
	c.String(http.StatusCreated, "not yet sent")
	panic("handler")
}

func reportAndPanic(c *gin.Context) {
	_ = c.Error(errDatabase)
	panic("handler")
}

func reportStatus(c *gin.Context) {
	_ = c.Error(errDatabase)
	c.Status(http.StatusAccepted)
}

func writeAndReport(c *gin.Context) {
	c.String(http.StatusInternalServerError, "written")
	_ = c.Error(errDatabase)
}

// Errors that were there before do not come from the guarded chain.
func TestErrorsBeforeTheGuard(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	before := func(c *gin.Context) { _ = c.Error(errDatabase) }
	for kind, guard := range recording(locks) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, router(before, guard, func(c *gin.Context) { c.Status(http.StatusNoContent) }))
			order(t, srv, "k").wantRun(t, http.StatusNoContent)
			order(t, srv, "k").wantReplay(t, http.StatusNoContent, "")
		})
	}
}

// A renderer that gives an error a body after its status was sent writes what the guard cannot see. A retry of a 4xx gets
// its status again, and is not told that it took effect: c.BindJSON answers so.
func TestBodyOfAnAbortIsOmitted(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	late := func(c *gin.Context) {
		c.Next()
		if len(c.Errors) > 0 {
			c.JSON(-1, gin.H{"error": "invalid"})
		}
	}
	user := httplock.ByHeader("X-User")
	for name, test := range map[string]struct {
		status int
		refuse bool
	}{
		"refused":       {http.StatusAccepted, true},
		"unprocessable": {http.StatusUnprocessableEntity, false},
	} {
		guard := ginlock.Idempotent(locks, user, patiently()...)
		srv := serve(t, router(late, guard, abortWith(test.status)))
		if a := order(t, srv, name); a.status != test.status || a.body == "" {
			t.Fatalf("first answer %d, %q", a.status, a.body)
		}
		a := order(t, srv, name)
		if test.refuse {
			a.want(t, http.StatusConflict) // to which the renderer adds a body as well
			continue
		}
		a.wantReplay(t, test.status, "")
		if a.header.Get("Idempotency-Replay") != "omitted" {
			t.Errorf("the replay does not say that a body is missing: %v", a.header)
		}
	}
}

// With ErrorsOnly the renderer answers refusals, and the guard writes nothing.
func TestErrorsOnlyWithRecords(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	rendered := func(c *gin.Context) {
		c.Next()
		conflict := new(httplock.Conflict)
		if len(c.Errors) == 0 || !errors.As(c.Errors.Last(), &conflict) {
			return
		}
		if c.Writer.Written() || c.Writer.Status() != conflict.Status {
			t.Errorf("written %v, status %d, want %d unwritten",
				c.Writer.Written(), c.Writer.Status(), conflict.Status)
		}
		c.String(-1, conflict.Code)
	}
	once := ginlock.Once(locks, httplock.ByHeader("X-User"), patiently(ginlock.ErrorsOnly())...)
	srv := serve(t, router(rendered, once, func(c *gin.Context) { c.Status(http.StatusCreated) }))
	order(t, srv, "").wantRun(t, http.StatusCreated)
	for range 2 {
		a := order(t, srv, "")
		a.want(t, http.StatusConflict)
		if a.body != httplock.CodeAlreadyCompleted {
			t.Errorf("rendered %q", a.body)
		}
	}
	silent := serve(t, router(once, func(*gin.Context) { t.Error("the handler ran again") }))
	a := order(t, silent, "")
	a.want(t, http.StatusConflict)
	if a.body != "" || a.header.Get("Content-Type") != "" {
		t.Errorf("the guard wrote %q, %v", a.body, a.header)
	}
}

// Whatever an inner guard is made to answer, the handler behind it did not run; what a handler between the two answers of
// its own is another matter.
func TestRefusalInside(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	answer := func(status int) httplock.Option {
		return ginlock.WithRefusalHandler(func(c *gin.Context, _ *httplock.Conflict) { c.String(status, "busy") })
	}
	created := func(c *gin.Context) { c.String(http.StatusCreated, "created") }
	for name, test := range map[string]struct {
		refusal httplock.Option
		between gin.HandlerFunc
		want    core.State
	}{
		"status 202":  {answer(202), nextOnly, core.StateNone},
		"status 400":  {answer(400), nextOnly, core.StateNone},
		"status 500":  {answer(500), nextOnly, core.StateNone},
		"errors only": {ginlock.ErrorsOnly(), nextOnly, core.StateNone},
		"default":     {ginlock.WithRefusalHandler(ginlock.Refuse), nextOnly, core.StateNone},
		"own answer":  {answer(409), created, core.StateCompleted},
	} {
		for _, policy := range []core.FailurePolicy{core.RetryFailures, core.HoldFailures} {
			ends := make(chan core.State, 100)
			locks := newLocks(t, rdb, core.WithHooks(core.Hooks{RunEnd: func(_ context.Context, e core.RunEnd) { ends <- e.State }}))
			outer := ginlock.Idempotent(locks, httplock.Unscoped(), patiently(core.WithFailurePolicy(policy))...)
			inner := ginlock.Exclusive(locks.Mutex, httplock.ByHeader("X-Missing"), test.refusal)
			srv := serve(t, router(outer, test.between, inner, func(*gin.Context) { t.Error("the handler ran") }))
			key := strings.ReplaceAll(name, " ", "-") + map[bool]string{true: "-held"}[policy == core.HoldFailures]
			order(t, srv, key)
			if got := receive(t, ends, "the end"); got != test.want {
				t.Errorf("%s with policy %d: %q, want %q", name, policy, got, test.want)
			}
		}
	}
}
