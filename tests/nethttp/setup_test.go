package nethttp_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestWrongClientOpensNoGuard: two replicas of a service have a client that never fits their Redis. Each of twelve users orders
// twice, once at each replica. Although the guards fail open, nobody gets two orders, and each service logs one warning.
func TestWrongClientOpensNoGuard(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3)
	master := testkit.Start(t, testkit.TCP())
	replica := testkit.Start(t)
	replica.ReplicaOf(master.Addr())
	for name, connect := range map[string]func() redis.UniversalClient{
		"Cluster": func() redis.UniversalClient {
			rdb := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{cluster.Masters[0].Addr()}})
			t.Cleanup(func() { _ = rdb.Close() })
			return rdb
		},
		"Replica": func() redis.UniversalClient { return replica.Client() },
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			orders := make(map[string]int)
			var services []http.Handler
			var logs [2]testkit.Log
			for i := range logs {
				locks, err := core.New(connect(), core.WithLogger(slog.New(slog.NewTextHandler(&logs[i], nil))))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = locks.Close() })
				services = append(services, httplock.Once(locks, httplock.ByHeader("User"), httplock.FailOpen())(
					http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						mu.Lock()
						defer mu.Unlock()
						orders[r.Header.Get("User")]++
					})))
			}
			refused := 0
			for i := range 12 {
				for _, service := range services {
					r := httptest.NewRequest(http.MethodPost, "/orders", http.NoBody)
					r.Header.Set("User", fmt.Sprint("user", i))
					w := httptest.NewRecorder()
					service.ServeHTTP(w, r)
					if w.Code == http.StatusServiceUnavailable {
						refused++
					}
				}
			}
			if refused == 0 {
				t.Error("no request was refused for the client")
			}
			for user, n := range orders {
				if n > 1 {
					t.Errorf("%s got %d orders", user, n)
				}
			}
			for i := range logs {
				text := logs[i].String()
				warnings := strings.Count(text, "locks do not work with this setup")
				if want := map[string]int{"Cluster": 1}[name]; warnings != want || strings.Contains(text, "runs unguarded") || strings.Contains(text, "user1") {
					t.Errorf("service %d: %d warnings of the client, want %d: %s", i, warnings, want, text)
				}
			}
		})
	}
}
