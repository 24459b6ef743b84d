package httpguard

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
)

// TestFullMemoryRefuses: what has run without Redis is not forgotten for the sake of another request, which may come again.
func TestFullMemoryRefuses(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Network: "unix", Addr: t.TempDir() + "/none", MaxRetries: -1})
	t.Cleanup(func() { _ = rdb.Close() })
	client, err := core.New(rdb, core.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	config := OnceConfig()
	config.FailOpen = true
	once, err := NewOnce(client, config)
	if err != nil {
		t.Fatal(err)
	}
	once.memory.Most = 2
	begin := func(name string) (*Run, *Conflict) {
		key, err := NewKey("order", name)
		if err != nil {
			t.Fatal(err)
		}
		run, _, conflict := once.Begin(t.Context(), Request{Key: key})
		return run, conflict
	}
	for i := range 2 {
		run, conflict := begin(fmt.Sprint(i))
		if conflict != nil {
			t.Fatal(conflict)
		}
		run.Finish(Outcome{Returned: true, Response: &Response{Status: http.StatusCreated}})
	}
	_, conflict := begin("more")
	if conflict == nil || conflict.Status != http.StatusServiceUnavailable || conflict.RetryAfter == 0 || !conflict.Retryable {
		t.Errorf("%+v, want 503", conflict)
	}
	if _, conflict := begin("0"); conflict == nil || conflict.Code != CodeAlreadyCompleted {
		t.Errorf("%+v, want that the first one is still known", conflict)
	}
}
