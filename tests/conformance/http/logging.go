package httpconformance

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

var loggingTests = tests{
	"RefusalsOfRedisAreLogged":       testLogUnavailable,
	"UnguardedRunsAreLogged":         testLogUnguarded,
	"LostLeasesAreLogged":            testLogLost,
	"UnknownOutcomesAreLogged":       testLogUnknown,
	"RefusalsOfClientsAreNotLogged":  testLogNothing,
	"UnrecordedEndsOfRunsAreLogged":  testLogUnrecorded,
	"LoggerIsThatOfTheLocksByItself": testLogStrategy,
}

// entry is a line of the log.
type entry struct {
	Level   string `json:"level"`
	Message string `json:"msg"`
	Place   string `json:"place"`
	Label   string `json:"label"`
	Hash    string `json:"key_hash"`
	Error   string `json:"error"`
}

// entries returns the lines of guards. A client of core has its own.
func (j *journal) entries(t testing.TB) (list []entry) {
	t.Helper()
	for line := range strings.Lines(j.String()) {
		var e entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Place == "http" {
			list = append(list, e)
		}
	}
	return list
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(j, nil)) }

// logged is a client that logs into a journal.
func logged(t testing.TB, rdb redis.UniversalClient) (*core.Client, *journal) {
	t.Helper()
	j := &journal{}
	locks, err := core.New(rdb, core.WithLogger(j.logger()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	return locks, j
}

// want checks how many lines there are, and that each has that level and text in its message or its error.
func (j *journal) want(t testing.TB, lines int, level, text string) []entry {
	t.Helper()
	list := j.entries(t)
	if len(list) != lines {
		t.Fatalf("logged %+v, want %d lines", list, lines)
	}
	for _, e := range list {
		if e.Level != level || !strings.Contains(e.Message+" "+e.Error, text) || e.Hash == "" || e.Label != label {
			t.Errorf("logged %+v, want level %s, %q, the route and the hash of a key", e, level, text)
		}
	}
	return list
}

// testLogUnavailable: the first of a thousand 503s is in the log of each guard, with the reason.
func testLogUnavailable(t *testing.T, s *suite) {
	locks, j := logged(t, testkit.Start(t).Client(as("nobody", "wrong")))
	hashes := map[string]bool{}
	for _, build := range s.builders() {
		site := s.mount(t, &counter{}, must(t)(build(locks, ByUser, unhurried(nil, asking)...)))
		for _, user := range []string{"ada", "bob", "eve"} {
			site.do(request{user: user, key: "k"}).want(t, http.StatusServiceUnavailable)
		}
	}
	for _, e := range j.want(t, 3, "ERROR", "WRONGPASS") {
		hashes[e.Hash] = true
	}
	if !hashes[userKey(t, "ada").Hash()] || !hashes[idempotentKey(t, "ada", "k").Hash()] {
		t.Errorf("logged %v, want the first keys", hashes)
	}
}

// testLogUnguarded: a gate that stands open is known.
func testLogUnguarded(t *testing.T, s *suite) {
	locks, j := logged(t, nowhere(t))
	var answers []<-chan answer // at the same time, because each request has to try for a second
	for _, build := range s.builders() {
		site := s.mount(t, &counter{}, must(t)(build(locks, ByUser, httplock.FailOpen(),
			httplock.WithAskTimeout(patience), core.WithWait(0))))
		for _, user := range []string{"ada", "bob", "eve"} {
			answers = append(answers, site.aside(t.Context(), request{user: user, key: "k"}))
		}
	}
	for _, a := range answers {
		receive(t, a, "the answer").want(t, http.StatusCreated)
	}
	j.want(t, 3, "ERROR", "runs unguarded")
}

// testLogLost: a run that has lost its lease may not have been alone.
func testLogLost(t *testing.T, s *suite) {
	for name, build := range s.builders() {
		locks, j := logged(t, s.redis.Client())
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-t.Context().Done():
			}
			w.WriteHeader(http.StatusCreated)
		})
		guard := must(t)(build(locks, ByUser, unhurried(nil, asking, core.WithMaxHold(time.Millisecond))...))
		s.mount(t, h, guard).do(request{user: "log-lost-" + name, key: "k"})
		list := j.entries(t)
		if len(list) == 0 || !strings.Contains(list[0].Message, "lost its lease") || list[0].Level != "WARN" {
			t.Errorf("%s: logged %+v, want a lost lease", name, list)
		}
	}
}

// testLogUnknown: a key that is held needs somebody to look.
func testLogUnknown(t *testing.T, s *suite) {
	locks, j := logged(t, s.redis.Client())
	site := s.mount(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }),
		must(t)(s.Once(locks, ByUser, unhurried(nil, core.WithFailurePolicy(core.HoldFailures))...)))
	site.do(request{user: "log-unknown"}).want(t, http.StatusBadGateway)
	site.do(request{user: "log-unknown"}).refused(t, http.StatusConflict, httplock.CodeOutcomeUnknown)
	line := j.want(t, 1, "WARN", "outcome of the work is unknown")[0]
	found := 0
	for m, err := range seal.NamesOf(locks).FindDigest(t.Context(), line.Hash) {
		if found++; err != nil || !m.Record || !strings.HasSuffix(m.Name, line.Hash) {
			t.Errorf("the hash %s of the log is that of %+v, %v", line.Hash, m, err)
		}
	}
	if found != 1 {
		t.Errorf("%d records have the hash %s of the log", found, line.Hash)
	}
}

// testLogUnrecorded: whoever has got an answer that was not recorded may get another one.
func testLogUnrecorded(t *testing.T, s *suite) {
	server := testkit.Start(t)
	locks, j := logged(t, server.Client())
	stage := newStage(t)
	site := s.mount(t, stage, must(t)(s.Once(locks, ByUser, httplock.WithAskTimeout(patience),
		httplock.WithFinishTimeout(200*time.Millisecond))))
	first := site.enter(t, stage, request{user: "ada"})
	server.Kill()
	close(stage.leave)
	receive(t, first, "the answer").want(t, http.StatusCreated)
	j.want(t, 1, "WARN", "end of the work could not be recorded")
}

// testLogNothing: clients do not write the log.
func testLogNothing(t *testing.T, s *suite) {
	locks, j := logged(t, s.redis.Client())
	opts := unhurried(nil, core.WithQuota(1), httplock.WithBodyLimit(5))
	site := s.mount(t, &counter{}, must(t)(s.Idempotent(locks, ByUser, opts...)))
	for status, r := range map[int]request{
		http.StatusBadRequest:            {user: "log-nothing"},
		http.StatusUnprocessableEntity:   {user: "log-nothing", key: "k", body: "other"},
		http.StatusTooManyRequests:       {user: "log-nothing", key: "other"},
		http.StatusRequestEntityTooLarge: {user: "log-nothing", key: "k", body: "larger"},
		http.StatusTooEarly:              {user: "log-nothing", key: "early", header: http.Header{"Early-Data": {"1"}}},
	} {
		site.do(request{user: "log-nothing", key: "k"}).want(t, http.StatusCreated)
		site.do(r).want(t, status)
	}
	principal := s.mount(t, &counter{}, must(t)(s.Once(locks, ByPrincipal)))
	principal.do(request{}).refused(t, http.StatusUnauthorized, httplock.CodeScopeRequired)
	for _, guard := range []Guard{
		must(t)(s.Once(locks, ByUser, unhurried(nil)...)),
		must(t)(s.Exclusive(locks.Mutex, ByUser, unhurried(nil, core.WithWait(0))...)),
	} {
		s.whileRunning(t, request{user: "log-nothing-running"}, guard).want(t, http.StatusConflict)
	}
	j.want(t, 0, "", "")
}

// testLogStrategy: a strategy that the application has made of others leads to their logger.
func testLogStrategy(t *testing.T, s *suite) {
	locks, j := logged(t, nowhere(t))
	both := func(name string, opts ...core.LockOption) *core.Lock {
		return core.Multi(locks.Mutex(name+":a", opts...), locks.Fair(name+":b", opts...))
	}
	guard := must(t)(s.Exclusive(both, ByUser, httplock.WithAskTimeout(patience), core.WithWait(0)))
	s.mount(t, &counter{}, guard).do(request{user: "ada"}).want(t, http.StatusServiceUnavailable)
	j.want(t, 1, "ERROR", "no answer from Redis")
}
