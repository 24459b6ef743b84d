package httpconformance

import (
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

var verdictTests = tests{
	"Verdicts":                 testVerdicts,
	"Limit":                    testLimit,
	"WhatIsMissingIsNamed":     testMissingNamed,
	"CompletedUntilFixedTime":  testCompletedUntil,
	"RefusedRequestIsNamed":    testRefusedHook,
	"EarlyDataReadsTheRecords": testEarlyData,
}

// verdict is a row of the table of refusals.
type verdict struct {
	code      string
	status    int
	retryable bool
	retry     bool // Retry-After is there
	get       func(t *testing.T, s *suite) answer
}

// private is in whatever a client must not read back.
const private = "mallory"

// verdicts are all refusals.
func verdicts() map[string]verdict {
	all := make(map[string]verdict)
	for _, some := range []map[string]verdict{keyVerdicts(), requestVerdicts(), recordVerdicts(), quotaVerdicts()} {
		maps.Copy(all, some)
	}
	return all
}

// keyVerdicts are about requests whose key is missing or malformed.
func keyVerdicts() map[string]verdict {
	invalid := func(header http.Header) func(*testing.T, *suite) answer {
		return func(t *testing.T, s *suite) answer {
			return s.mount(t, &counter{}, s.idempotent(t)).do(request{user: private, header: header})
		}
	}
	return map[string]verdict{
		"no key": {
			code: httplock.CodeKeyRequired, status: 400,
			get: func(t *testing.T, s *suite) answer { return s.mount(t, &counter{}, s.once(t)).do(request{}) },
		},
		"no key for the lock": {
			code: httplock.CodeKeyRequired, status: 400,
			get: func(t *testing.T, s *suite) answer { return s.mount(t, &counter{}, s.exclusive(t)).do(request{}) },
		},
		"no Idempotency-Key": {code: httplock.CodeKeyRequired, status: 400, get: invalid(nil)},
		"an open quote": {
			code: httplock.CodeKeyInvalid, status: 400,
			get: invalid(http.Header{"Idempotency-Key": {`"` + private}}),
		},
		"two keys": {
			code: httplock.CodeKeyInvalid, status: 400,
			get: invalid(http.Header{"Idempotency-Key": {`"a"`, `"b"`}}),
		},
		"a long key": {
			code: httplock.CodeKeyInvalid, status: 400,
			get: invalid(http.Header{"Idempotency-Key": {strings.Repeat("a", 256)}}),
		},
		"no principal": {
			code: httplock.CodeScopeRequired, status: 401,
			get: func(t *testing.T, s *suite) answer {
				guard := must(t)(s.Idempotent(s.locks, ByPrincipal))
				return s.mount(t, &counter{}, guard).do(request{user: private, key: private})
			},
		},
	}
}

// requestVerdicts are about requests that no guard lets through, whatever was recorded.
func requestVerdicts() map[string]verdict {
	return map[string]verdict{
		"a large body": {
			code: httplock.CodePayloadTooLarge, status: 413,
			get: func(t *testing.T, s *suite) answer {
				site := s.mount(t, &counter{}, s.idempotent(t, httplock.WithBodyLimit(3)))
				return site.do(request{user: private, key: "large", body: "order"})
			},
		},
		"early data": {
			code: httplock.CodeTooEarly, status: 425, retryable: true,
			get: func(t *testing.T, s *suite) answer {
				site := s.mount(t, &counter{}, s.once(t))
				return site.do(request{user: private + "-early", header: http.Header{"Early-Data": {"1"}}})
			},
		},
		"no Redis": {
			code: httplock.CodeLockUnavailable, status: 503, retryable: true, retry: true,
			get: func(t *testing.T, s *suite) answer {
				redis := testkit.Start(t)
				locks := newLocks(t, redis.Client())
				redis.Kill()
				site := s.mount(t, &counter{}, must(t)(s.Once(locks, ByUser)))
				return site.do(request{user: private})
			},
		},
	}
}

// recordVerdicts are about what a lock or a record says.
func recordVerdicts() map[string]verdict {
	return map[string]verdict{
		"lock held": {code: httplock.CodeLockConflict, status: 409, retryable: true, retry: true, get: getLockConflict},
		"in progress": {
			code: httplock.CodeRequestInProgress, status: 409, retryable: true, retry: true,
			get: func(t *testing.T, s *suite) answer {
				return s.whileRunning(t, request{user: private + "-running"}, s.once(t))
			},
		},
		"completed": {
			code: httplock.CodeAlreadyCompleted, status: 409,
			get: func(t *testing.T, s *suite) answer {
				site, r := s.mount(t, &counter{}, s.once(t)), request{user: private + "-completed"}
				site.do(r).want(t, http.StatusCreated)
				return site.do(r)
			},
		},
		"another payload": {
			code: httplock.CodeKeyReused, status: 422,
			get: func(t *testing.T, s *suite) answer {
				site := s.mount(t, &counter{}, s.idempotent(t))
				site.do(request{user: private, key: "reused", body: "a"}).want(t, http.StatusCreated)
				return site.do(request{user: private, key: "reused", body: "b"})
			},
		},
		"unknown outcome": {
			code: httplock.CodeOutcomeUnknown, status: 409,
			get: func(t *testing.T, s *suite) answer {
				site := s.mount(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) }),
					s.once(t, core.WithFailurePolicy(core.HoldFailures)))
				r := request{user: private + "-unknown"}
				site.do(r).want(t, http.StatusBadGateway)
				return site.do(r)
			},
		},
	}
}

// quotaVerdicts are about users with too many records.
func quotaVerdicts() map[string]verdict {
	return map[string]verdict{
		"many keys": {
			code: httplock.CodeTooManyKeys, status: 429, retryable: true, retry: true,
			get: func(t *testing.T, s *suite) answer {
				site := s.mount(t, &counter{}, s.idempotent(t, core.WithQuota(1)))
				site.do(request{user: private + "-quota", key: "a"}).want(t, http.StatusCreated)
				site.do(request{user: private + "-quota", key: "a"}).replayed(t, http.StatusCreated, "1")
				return site.do(request{user: private + "-quota", key: "b"})
			},
		},
	}
}

// whileRunning returns what a second request gets while the first one runs.
func (s *suite) whileRunning(t testing.TB, r request, guard Guard) answer {
	t.Helper()
	stage := newStage(t)
	site := s.mount(t, stage, guard)
	first := site.aside(t.Context(), request{user: r.user})
	receive(t, stage.entered, "the first run")
	second := site.do(r)
	close(stage.leave)
	receive(t, first, "the first answer").want(t, http.StatusCreated)
	if len(stage.entered) != 0 {
		t.Error("the second request ran as well")
	}
	return second
}

func getLockConflict(t *testing.T, s *suite) answer {
	return s.whileRunning(t, request{user: private + "-lock"}, s.exclusive(t, core.WithWait(0)))
}

func testVerdicts(t *testing.T, s *suite) {
	for name, want := range verdicts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := want.get(t, s)
			p := a.refused(t, want.status, want.code)
			if p.Retryable != want.retryable {
				t.Errorf("retryable %v, want %v", p.Retryable, want.retryable)
			}
			retry := a.header.Get("Retry-After")
			seconds, err := strconv.Atoi(retry)
			switch {
			case want.retry && (err != nil || seconds < 1 || seconds != p.RetryAfter):
				t.Errorf("Retry-After %q, %d in the problem, want the same seconds", retry, p.RetryAfter)
			case !want.retry && (retry != "" || p.RetryAfter != 0):
				t.Errorf("Retry-After %q, %d in the problem, want none", retry, p.RetryAfter)
			}
			for field, value := range map[string]string{
				"Content-Language": "en", "Cache-Control": "no-store", "Idempotency-Replayed": "",
			} {
				if got := a.header.Get(field); got != value {
					t.Errorf("%s %q, want %q", field, got, value)
				}
			}
			if p.Type != "about:blank" || p.Title != http.StatusText(want.status) || p.Detail == "" {
				t.Errorf("type %q, title %q, detail %q", p.Type, p.Title, p.Detail)
			}
			if strings.Contains(a.body, private) {
				t.Errorf("the client reads its own text back: %s", a.body)
			}
		})
	}
}

// testMissingNamed: a client learns from the refusal what to send, and nothing that it has sent comes back.
func testMissingNamed(t *testing.T, s *suite) {
	key := func(lines ...string) request {
		return request{user: private, header: http.Header{"Idempotency-Key": lines}}
	}
	named := s.idempotent(t, httplock.WithKeyHeader("X-Payment-Key"))
	for name, test := range map[string]struct {
		guard Guard
		send  request
		want  string
	}{
		"no Idempotency-Key":     {s.idempotent(t), request{user: private}, "The header field Idempotency-Key is missing."},
		"two Idempotency-Keys":   {s.idempotent(t), key(private, private), "The header field Idempotency-Key is there 2 times."},
		"an empty one":           {s.idempotent(t), key(""), "The header field Idempotency-Key is empty."},
		"an open quote":          {s.idempotent(t), key(`"` + private), "The header field Idempotency-Key is not a quoted string"},
		"a long one":             {s.idempotent(t), key(private + strings.Repeat("a", 249)), "256 bytes, at most 255 are allowed."},
		"another header field":   {named, key(private), "The header field X-Payment-Key is missing."},
		"no scope":               {s.idempotent(t), request{key: private}, "The header field X-User is missing."},
		"no key of Once":         {s.once(t), request{}, "The header field X-User is missing."},
		"no key of Exclusive":    {s.exclusive(t), request{}, "The header field X-User is missing."},
		"a long value":           {s.once(t), request{user: private + strings.Repeat("a", 250)}, "The header field X-User has 257 bytes"},
		"two values in a header": {s.once(t), request{header: http.Header{"X-User": {private, private}}}, "The header field X-User is there 2 times."},
	} {
		p := s.mount(t, &counter{}, test.guard).do(test.send)
		got := p.refused(t, http.StatusBadRequest, httplock.CodeKeyRequired, httplock.CodeKeyInvalid).Detail
		if !strings.Contains(got, test.want) || strings.Contains(got, private) {
			t.Errorf("%s: detail %q, want %q", name, got, test.want)
		}
	}
}

// testCompletedUntil: one order a day may be sent again tomorrow.
func testCompletedUntil(t *testing.T, s *suite) {
	var until time.Time
	began := time.Now()
	midnight := func(now time.Time) time.Time { return began.Add(2 * time.Hour) }
	until = midnight(began)
	site := s.mount(t, &counter{}, s.once(t, httplock.WithRetentionUntil(midnight)))
	r := request{user: "until"}
	site.do(r).want(t, http.StatusCreated)
	a := site.do(r)
	p := a.refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
	got := time.Duration(p.RetryAfter) * time.Second
	if left := time.Until(until); got < left || got > 2*time.Hour+time.Second {
		t.Errorf("Retry-After %v, want the %v that are left", got, left)
	}
}

func testRefusedHook(t *testing.T, s *suite) {
	watch := newWatch()
	site := s.mount(t, &counter{}, s.told(t, watch).once(t))
	r := request{user: "refused-hook"}
	site.do(r).want(t, http.StatusCreated)
	site.do(r).want(t, http.StatusConflict)
	c := receive(t, watch.refused, "the hook")
	if c.Code != httplock.CodeAlreadyCompleted || c.KeyHash != userKey(t, r.user).Hash() || c.Status != 409 {
		t.Errorf("hook told %+v", c)
	}
	f := receive(t, watch.finished, "the hook of the run")
	if f.Err != nil || f.State != core.StateCompleted || f.Attempt != 1 || f.KeyHash != c.KeyHash {
		t.Errorf("hook told %+v", f)
	}
}

// testEarlyData: what an attacker may have sent again runs nothing, but may read what there is.
func testEarlyData(t *testing.T, s *suite) {
	early := http.Header{"Early-Data": {"1"}}
	runs := &counter{}
	site := s.mount(t, runs, s.idempotent(t))
	r := request{user: "early", key: "k", header: early}
	site.do(r).refused(t, http.StatusTooEarly, httplock.CodeTooEarly)
	if got := record(t, s.locks, idempotentKey(t, "early", "k")); got.State != core.StateNone || got.Attempt != 0 {
		t.Errorf("early data left a record: %+v", got)
	}
	site.do(request{user: "early", key: "k"}).fresh(t, http.StatusCreated, "1")
	site.do(r).replayed(t, http.StatusCreated, "1")
	runs.ran(t, 1)
	locked := s.mount(t, runs, s.exclusive(t))
	locked.do(r).refused(t, http.StatusTooEarly, httplock.CodeTooEarly)
	runs.ran(t, 1)
}
