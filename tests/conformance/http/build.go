package httpconformance

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

var buildTests = map[string]func(*testing.T, *suite){
	"InvalidOptionsAreNamed":          testInvalidOptions,
	"OptionsOfEachPlace":              testOptionsOfPlaces,
	"StrategiesAreChecked":            testExclusiveOptions,
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
		"WithWait(-1ns)":                   core.WithWait(-1),
		"WithAskTimeout(0s)":               httplock.WithAskTimeout(0),
		"WithAskTimeout(5ns): 1ms to":      httplock.WithAskTimeout(5),
		"WithWait(5ns): 0 or at least 1ms": core.WithWait(5),
		"WithFinishTimeout(5ns): 1ms to":   httplock.WithFinishTimeout(5),
		"waiters":                          httplock.WithWaiters(-1, 1),
		"body limit":                       httplock.WithBodyLimit(-1),
		"body memory":                      httplock.WithBodyMemory(0),
		"WithKeySecret: 5 bytes":           httplock.WithKeySecret([]byte("short")),
		"WithKeySecret: 0 bytes":           httplock.WithKeySecret(nil),
		"WithTTL":                          core.WithTTL(-1),
		"WithFinishTimeout(0s)":            httplock.WithFinishTimeout(0),
	}
	records := map[string]httplock.Option{
		"WithRetention":           core.WithRetention(0),
		"WithRetention(-1":        core.WithRetention(-1),
		"WithFailurePolicy(7)":    core.WithFailurePolicy(7),
		"WithCodec":               httplock.WithCodec(nil),
		"the codec is nil":        httplock.WithCodec((*lostCodec)(nil)),
		"WithMaxValue(-1)":        core.WithMaxValue(-1),
		"WithMaxValue(104857600)": core.WithMaxValue(100 << 20),
		"key header":              httplock.WithKeyHeader(""),
		"WithOwner":               core.WithOwner("ada"),
		"WithMinHold":             core.WithMinHold(time.Second),
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

// testOptionsOfPlaces: each constructor takes the options that make sense there, and refuses the others with an error that names
// the option and the place.
func testOptionsOfPlaces(t *testing.T, s *suite) {
	locks := offline(t)
	const all, records = "Exclusive Once Idempotent", "Once Idempotent"
	codec, err := httplock.NewAESGCM(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	until := func(now time.Time) time.Time { return now }
	judge := func(httplock.Handled) httplock.Disposition { return 0 }
	options := map[string]struct {
		option httplock.Option
		places string
	}{
		"core.WithTTL":        {core.WithTTL(time.Second), all},
		"core.WithWait":       {core.WithWait(time.Second), all},
		"core.WithMaxHold":    {core.WithMaxHold(time.Second), all},
		"core.WithReplicaAck": {core.WithReplicaAck(1, time.Millisecond), all},
		"core.WithFixedTTL":   {core.WithFixedTTL(time.Second), "Exclusive"},
		"core.WithMinHold":    {core.WithMinHold(time.Second), "Exclusive"},
		"core.WithPermits":    {core.WithPermits(1), "Exclusive"},
		"core.WithOwner":      {core.WithOwner("me"), ""},

		"core.WithRetention":     {core.WithRetention(time.Hour), records},
		"core.WithFailurePolicy": {core.WithFailurePolicy(core.HoldFailures), records},
		"core.WithMaxValue":      {core.WithMaxValue(1), records},
		"core.WithProof":         {core.WithProof(noProof{}), records},
		"core.WithQuota":         {core.WithQuota(1), "Idempotent"},
		"core.WithFingerprint":   {core.WithFingerprint([]byte("x")), ""},
		"core.WithGroup":         {core.WithGroup(), ""},
		"core.WithWindow":        {core.WithWindow(time.Time{}, time.Time{}), ""},
		"core.WithNote":          {core.WithNote("note"), ""},
		"core.WithLabel":         {core.WithLabel("label"), ""},
		"core.WithEncoding":      {core.WithEncoding(json.Marshal, json.Unmarshal), ""},

		"FailOpen":          {httplock.FailOpen(), all},
		"OptionalKey":       {httplock.OptionalKey(), all},
		"WithKeySecret":     {httplock.WithKeySecret(make([]byte, 16)), all},
		"WithAskTimeout":    {httplock.WithAskTimeout(time.Second), all},
		"WithFinishTimeout": {httplock.WithFinishTimeout(time.Second), all},
		"WithZombieGrace":   {cronlock.WithZombieGrace(time.Second), ""},

		"httplock.WithMethods":         {httplock.WithMethods("PUT"), all},
		"httplock.WithWaiters":         {httplock.WithWaiters(1, 2), all},
		"httplock.WithBodyLimit":       {httplock.WithBodyLimit(7), all},
		"httplock.WithBodyMemory":      {httplock.WithBodyMemory(1 << 30), all},
		"httplock.WithRetentionUntil":  {httplock.WithRetentionUntil(until), records},
		"httplock.WithCompletion":      {httplock.WithCompletion(judge), records},
		"httplock.WithDetachedContext": {httplock.WithDetachedContext(), records},
		"httplock.WithReplay":          {httplock.WithReplay(), "Once"},
		"httplock.WithCodec":           {httplock.WithCodec(codec), records},
		"httplock.WithFingerprint":     {httplock.WithFingerprint(nil), records},
		"httplock.WithKeyHeader":       {httplock.WithKeyHeader("X-Key"), records},
		"httplock.WithComparedHeader":  {httplock.WithComparedHeader("X-Key"), "Idempotent"},
		"cronlock.WithHistory":         {cronlock.WithHistory(3), ""},
	}
	for _, name := range coretest.OptionNames(t) {
		if _, there := options[name]; !there {
			t.Errorf("%s is not tested", name)
		}
	}
	for place, build := range map[string]builder{
		"Exclusive": func(c *core.Client, k Key, opts ...httplock.Option) (Guard, error) {
			return s.Exclusive(c.Limit(1), k, opts...)
		},
		"Once": s.Once, "Idempotent": s.Idempotent,
	} {
		for name, o := range options {
			_, err := build(locks, ByUser, o.option)
			switch takes := strings.Contains(" "+o.places+" ", " "+place+" "); {
			case takes:
				if err != nil {
					t.Errorf("%s with %s: %v", place, name, err)
				}
			case name == "httplock.WithComparedHeader" && place == "Once":
				rejects(t, err, "nothing is compared without WithFingerprint")
			case !errors.Is(err, core.ErrInvalidOption):
				t.Errorf("%s with %s: error %v", place, name, err)
			default:
				rejects(t, err, "lock."+place+" does not take "+name)
			}
		}
	}
}

func testExclusiveOptions(t *testing.T, s *suite) {
	locks := offline(t)
	_, err := s.Exclusive(locks.Limit(0), ByUser)
	rejects(t, err, "n = 0")
	_, err = s.Exclusive(locks.Limit(3), ByUser, core.WithPermits(4))
	rejects(t, err, "WithPermits(4)")
	_, err = s.Exclusive(locks.Mutex, ByUser, core.WithPermits(1))
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
	rejects(t, err, "the zero Client")
	_, err = s.Idempotent(&core.Client{}, ByUser)
	rejects(t, err, "the zero Client")
}

func testFailOpenHold(t *testing.T, s *suite) {
	locks, hold := offline(t), core.WithFailurePolicy(core.HoldFailures)
	for _, build := range []builder{s.Once, s.Idempotent} {
		_, err := build(locks, ByUser, httplock.FailOpen(), hold)
		rejects(t, err, "FailOpen with core.HoldFailures")
	}
}

// testRefusedWithoutRedis: what is wrong with a request itself is told whether Redis replies or not.
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

// noProof is a proof that is not asked.
type noProof struct{ core.Proof }

func (noProof) OnlyEffect() bool { return false }
