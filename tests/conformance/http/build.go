package httpconformance

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
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
type lostCodec struct{ httplock.Codec }

func testInvalidOptions(t *testing.T, s *suite) {
	locks := offline(t)
	common := map[string]httplock.Option{
		"methods":                          httplock.WithMethods(),
		"method is empty":                  httplock.WithMethods("POST", ""),
		"wait":                             httplock.WithWait(-1),
		"ask timeout":                      httplock.WithAskTimeout(0),
		"ask timeout 5ns: at least 1ms":    httplock.WithAskTimeout(5),
		"wait 5ns: at least 1ms":           httplock.WithWait(5),
		"finish timeout 5ns: at least 1ms": httplock.WithFinishTimeout(5),
		"waiters":                          httplock.WithWaiters(-1, 1),
		"body limit":                       httplock.WithBodyLimit(-1),
		"body memory":                      httplock.WithBodyMemory(0),
		"key secret":                       httplock.WithKeySecret([]byte("short")),
		"of 0 bytes":                       httplock.WithKeySecret(nil),
		"WithTTL":                          httplock.WithLock(core.WithTTL(-1)),
		"finish timeout":                   httplock.WithFinishTimeout(0),
	}
	records := map[string]httplock.Option{
		"WithRetention":        httplock.WithRetention(0),
		"WithRetention(-1":     httplock.WithRetention(-1),
		"WithFailurePolicy(7)": httplock.WithFailurePolicy(7),
		"WithCodec":            httplock.WithCodec(nil),
		"the codec is nil":     httplock.WithCodec((*lostCodec)(nil)),
		"record limit":         httplock.WithRecordLimit(-1),
		"record limit of 10":   httplock.WithRecordLimit(100 << 20),
		"key header":           httplock.WithKeyHeader(""),
		"WithOwner":            httplock.WithLock(core.WithOwner("ada")),
		"WithMinHold":          httplock.WithLock(core.WithMinHold(time.Second)),
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
	_, err := s.Idempotent(locks, ByUser, httplock.WithBodyLimit(0))
	rejects(t, err, "body limit") // it compares bodies
}

func testExclusiveOptions(t *testing.T, s *suite) {
	locks := offline(t)
	for name, option := range map[string]httplock.Option{
		"WithRetention":       httplock.WithRetention(time.Hour),
		"WithRetentionUntil":  httplock.WithRetentionUntil(func(now time.Time) time.Time { return now }),
		"WithFailurePolicy":   httplock.WithFailurePolicy(core.HoldFailures),
		"WithCompletion":      httplock.WithCompletion(func(httplock.Outcome) httplock.Disposition { return 0 }),
		"WithDetachedContext": httplock.WithDetachedContext(),
		"WithReplay":          httplock.WithReplay(),
		"WithRecordLimit":     httplock.WithRecordLimit(1),
		"LateAnswers":         httplock.LateAnswers(),
		"WithFingerprint":     httplock.WithFingerprint(nil),
		"WithKeyHeader":       httplock.WithKeyHeader("X-Key"),
	} {
		_, err := s.Exclusive(locks.Mutex, ByUser, option)
		rejects(t, err, name)
	}
	_, err := s.Exclusive(locks.Limit(0), ByUser)
	rejects(t, err, "n = 0")
	_, err = s.Exclusive(locks.Limit(3), ByUser, httplock.WithLock(core.WithPermits(4)))
	rejects(t, err, "WithPermits(4)")
	_, err = s.Exclusive(locks.Mutex, ByUser, httplock.WithLock(core.WithPermits(1)))
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
	locks, hold := offline(t), httplock.WithFailurePolicy(core.HoldFailures)
	for _, build := range []builder{s.Once, s.Idempotent} {
		_, err := build(locks, ByUser, httplock.FailOpen(), hold)
		rejects(t, err, "FailOpen with HoldFailures")
	}
}

// testRefusedWithoutRedis: what is wrong with a request itself is told whether Redis answers or not.
func testRefusedWithoutRedis(t *testing.T, s *suite) {
	site := s.mount(t, &counter{}, must(t)(s.Idempotent(offline(t), ByUser, httplock.WithBodyLimit(1))))
	site.do(request{user: "ada"}).refused(t, http.StatusBadRequest, httplock.CodeKeyRequired)
	site.do(request{user: "ada", key: "k", body: "order"}).
		refused(t, http.StatusRequestEntityTooLarge, httplock.CodePayloadTooLarge)
}

// testOptionOrder: the last one holds.
func testOptionOrder(t *testing.T, s *suite) {
	guard := must(t)(s.Idempotent(offline(t), ByUser, httplock.WithKeyHeader("X-A"), httplock.WithKeyHeader("X-B")))
	site := s.mount(t, &counter{}, guard)
	r := request{user: "ada", header: http.Header{"X-A": {"k"}}}
	site.do(r).refused(t, http.StatusBadRequest, httplock.CodeKeyRequired)
}
