package nethttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestFailOpenRemembersNoMore: a guard that fails open runs 10,000 keys in an outage. It cannot remember the effect of
// a further one, so it refuses that with 503, and runs none of the others again. When Redis is back, it records them,
// and has room.
//
// It is not parallel: it takes all there is of a small machine, and other tests give Redis a second.
func TestFailOpenRemembersNoMore(t *testing.T) {
	const most = 10_000
	var away atomic.Bool
	away.Store(true)
	rdb := testkit.Start(t).Client()
	rdb.AddHook(coretest.Answering{Answer: func(string) (any, error) {
		if away.Load() {
			return nil, syscall.ECONNREFUSED
		}
		return nil, nil
	}})
	locks := newLocks(t, rdb)
	var ran atomic.Int64
	guard := httplock.Once(locks, httplock.ByHeader("X-User"), httplock.FailOpen(), httplock.WithAskTimeout(50*time.Millisecond),
		httplock.WithFinishTimeout(time.Millisecond))
	handler := guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		ran.Add(1)
		w.WriteHeader(http.StatusCreated)
	}))
	send := func(user string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("X-User", user)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	var all sync.WaitGroup
	var next atomic.Int64
	for range 128 { // more would take longer to begin than the guard waits for Redis
		all.Go(func() {
			for i := next.Add(1); i <= most && !t.Failed(); i = next.Add(1) {
				w := send(fmt.Sprint(i))
				for began := time.Now(); w.Code == http.StatusServiceUnavailable && time.Since(began) < coretest.Long; {
					w = send(fmt.Sprint(i)) // the machine was too busy to ask Redis at all, so the key did not run
				}
				if w.Code != http.StatusCreated {
					t.Errorf("key %d: %d %s", i, w.Code, w.Body)
				}
			}
		})
	}
	all.Wait()
	if w := send("one more"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "unavailable") {
		t.Errorf("one more: %d %s", w.Code, w.Body)
	}
	if w := send("1"); w.Code < 400 {
		t.Errorf("again: %d %s", w.Code, w.Body)
	}
	if n := ran.Load(); n != most {
		t.Errorf("%d runs", n)
	}
	away.Store(false)
	testkit.Eventually(t, time.Minute, "room in the memory", func() bool { return send("one more").Code == http.StatusCreated })
	if n := ran.Load(); n != most+1 {
		t.Errorf("%d runs", n)
	}
}
