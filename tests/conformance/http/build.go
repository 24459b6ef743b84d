package httpconformance

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware"
)

var buildTests = map[string]func(*testing.T, *suite){
	"InvalidOptionsAreNamed":          testInvalidOptions,
	"RecordsAreNotForExclusive":       testExclusiveOptions,
	"MissingArgumentsAreNamed":        testMissingArguments,
	"FailOpenAndHoldFailuresExclude":  testFailOpenHold,
	"RequestsNeedNoRedisToBeRefused":  testRefusedWithoutRedis,
	"OptionsBuildOnOneAnotherInOrder": testOptionOrder,
}

// offline is a client whose Redis nobody asks.
func offline(t testing.TB) *core.Client {
	t.Helper()
	return newLocks(t, nowhere(t))
}

// rejects checks that an error names what is wrong.
func rejects(t testing.TB, err error, name string) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), "holdfast: ") || !strings.Contains(err.Error(), name) {
		t.Errorf("error %v, want one of holdfast that names %q", err, name)
	}
}

// lostCodec is a codec that a function has not returned, as a pointer of its type.
type lostCodec struct{ middleware.Codec }

func testInvalidOptions(t *testing.T, s *suite) {
	locks := offline(t)
	common := map[string]middleware.Option{
		"methods":                          middleware.WithMethods(),
		"method is empty":                  middleware.WithMethods("POST", ""),
		"wait":                             middleware.WithWait(-1),
		"ask timeout":                      middleware.WithAskTimeout(0),
		"ask timeout 5ns: at least 1ms":    middleware.WithAskTimeout(5),
		"wait 5ns: at least 1ms":           middleware.WithWait(5),
		"finish timeout 5ns: at least 1ms": middleware.WithFinishTimeout(5),
		"waiters":                          middleware.WithWaiters(-1, 1),
		"body limit":                       middleware.WithBodyLimit(-1),
		"body memory":                      middleware.WithBodyMemory(0),
		"key secret":                       middleware.WithKeySecret([]byte("short")),
		"of 0 bytes":                       middleware.WithKeySecret(nil),
		"WithTTL":                          middleware.WithLock(core.WithTTL(-1)),
		"finish timeout":                   middleware.WithFinishTimeout(0),
	}
	records := map[string]middleware.Option{
		"WithRetention":        middleware.WithRetention(0),
		"WithRetention(-1":     middleware.WithRetention(-1),
		"WithFailurePolicy(7)": middleware.WithFailurePolicy(7),
		"WithCodec":            middleware.WithCodec(nil),
		"the codec is nil":     middleware.WithCodec((*lostCodec)(nil)),
		"record limit":         middleware.WithRecordLimit(-1),
		"record limit of 10":   middleware.WithRecordLimit(100 << 20),
		"key header":           middleware.WithKeyHeader(""),
		"WithOwner":            middleware.WithLock(core.WithOwner("ada")),
		"WithMinHold":          middleware.WithLock(core.WithMinHold(time.Second)),
	}
	for name, option := range common {
		_, err := s.Exclusive(locks.Mutex, ByUser, option)
		rejects(t, err, name)
		records[name] = option
	}
	for name, option := range records {
		_, err := s.Once(locks, ByUser, option)
		rejects(t, err, name)
		_, err = s.Idempotent(locks, ByUser, option)
		rejects(t, err, name)
	}
	_, err := s.Idempotent(locks, ByUser, middleware.WithBodyLimit(0))
	rejects(t, err, "body limit") // it compares bodies
}

func testExclusiveOptions(t *testing.T, s *suite) {
	locks := offline(t)
	for name, option := range map[string]middleware.Option{
		"WithRetention":       middleware.WithRetention(time.Hour),
		"WithRetentionUntil":  middleware.WithRetentionUntil(func(now time.Time) time.Time { return now }),
		"WithFailurePolicy":   middleware.WithFailurePolicy(core.HoldFailures),
		"WithCompletion":      middleware.WithCompletion(func(middleware.Outcome) middleware.Disposition { return 0 }),
		"WithDetachedContext": middleware.WithDetachedContext(),
		"WithReplay":          middleware.WithReplay(),
		"WithRecordLimit":     middleware.WithRecordLimit(1),
		"LateAnswers":         middleware.LateAnswers(),
		"WithFingerprint":     middleware.WithFingerprint(nil),
		"WithKeyHeader":       middleware.WithKeyHeader("X-Key"),
	} {
		_, err := s.Exclusive(locks.Mutex, ByUser, option)
		rejects(t, err, name)
	}
	_, err := s.Exclusive(locks.Limit(0), ByUser)
	rejects(t, err, "n = 0")
	_, err = s.Exclusive(locks.Limit(3), ByUser, middleware.WithLock(core.WithPermits(4)))
	rejects(t, err, "WithPermits(4)")
	_, err = s.Exclusive(locks.Mutex, ByUser, middleware.WithLock(core.WithPermits(1)))
	rejects(t, err, "WithPermits(1)")
	_, err = s.Exclusive(func(string, ...core.LockOption) *core.Lock { return nil }, ByUser)
	rejects(t, err, "the Lock is nil")
}

func testMissingArguments(t *testing.T, s *suite) {
	_, err := s.Exclusive(nil, ByUser)
	rejects(t, err, "strategy")
	_, err = s.Once(nil, ByUser)
	rejects(t, err, "client")
	_, err = s.Idempotent(nil, ByUser)
	rejects(t, err, "client")
	_, err = s.Once(&core.Client{}, ByUser)
	rejects(t, err, "the client is the zero Client")
	_, err = s.Idempotent(&core.Client{}, ByUser)
	rejects(t, err, "the client is the zero Client")
}

func testFailOpenHold(t *testing.T, s *suite) {
	locks, hold := offline(t), middleware.WithFailurePolicy(core.HoldFailures)
	for _, build := range []builder{s.Once, s.Idempotent} {
		_, err := build(locks, ByUser, middleware.FailOpen(), hold)
		rejects(t, err, "FailOpen with HoldFailures")
	}
}

// testRefusedWithoutRedis: what is wrong with a request itself is told whether Redis answers or not.
func testRefusedWithoutRedis(t *testing.T, s *suite) {
	site := s.mount(t, &counter{}, must(t)(s.Idempotent(offline(t), ByUser, middleware.WithBodyLimit(1))))
	site.do(request{user: "ada"}).refused(t, http.StatusBadRequest, middleware.CodeKeyRequired)
	site.do(request{user: "ada", key: "k", body: "order"}).
		refused(t, http.StatusRequestEntityTooLarge, middleware.CodePayloadTooLarge)
}

// testOptionOrder: the last one holds.
func testOptionOrder(t *testing.T, s *suite) {
	guard := must(t)(s.Idempotent(offline(t), ByUser, middleware.WithKeyHeader("X-A"), middleware.WithKeyHeader("X-B")))
	site := s.mount(t, &counter{}, guard)
	r := request{user: "ada", header: http.Header{"X-A": {"k"}}}
	site.do(r).refused(t, http.StatusBadRequest, middleware.CodeKeyRequired)
}
