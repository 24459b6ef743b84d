package inspector_test

import (
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/inspector"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

const thread = "0b0b6f3a-5d6f-4c8e-9c52-5a2f0f3d9f11:54"

// TestHashesOfOthers: without a prefix, hashes of other data are not shown as locks, and cannot be forced. List says the same.
func TestHashesOfOthers(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	rdb := server.Client()
	locks := newClient(t, server.Client(), core.WithPrefix(""))
	s := newSite(t, locks, inspector.WithActions(asAda))
	mustLock(t, locks.Mutex("taken"))
	token := s.token("force-unlock?name=taken")
	for name, fields := range map[string][]any{
		"user:1":   {"name", "Ada", "iban", "DE02"},
		"cart:1":   {"sku-1", 2},
		"cart:2":   {"sku-1", 2, "sku-2", 1},
		"dark":     {"mode", "dark", "token", 5, "visits", 7},
		"sessions": {thread, 1, "0b0b6f3a-5d6f-4c8e-9c52-5a2f0f3d9f12:54", 1},
		"fixed":    {"mode", "mutex", "token", 5},
	} {
		hashOf(t, rdb, name, fields, 0)
		q := "?name=" + url.QueryEscape(name)
		body := s.get(http.StatusOK, "lock"+q)
		contains(t, body, "not a lock")
		lacks(t, body, "force-unlock", "iban", "sku-1")
		var lock struct {
			NotLock bool `json:"not_a_lock"`
			Holders []any
		}
		if s.data("lock"+q, &lock); !lock.NotLock || len(lock.Holders) > 0 {
			t.Errorf("%s: %+v", name, lock)
		}
		contains(t, s.get(http.StatusConflict, "force-unlock"+q), "other data")
		contains(t, s.get(http.StatusOK, "find?q="+url.QueryEscape(name)), "No lock of this name is held")
		for _, path := range []string{"force-unlock" + q, "force-unlock-holder" + q + "&owner=iban"} {
			resp, body := s.do(http.MethodPost, path, url.Values{"token": {token}, "confirm": {name}})
			if resp.StatusCode != http.StatusConflict {
				t.Errorf("%s: status %d: %s", path, resp.StatusCode, body)
			}
		}
		if n := rdb.HLen(t.Context(), name).Val(); n != int64(len(fields)/2) {
			t.Errorf("%s has %d fields left", name, n)
		}
	}
	// A large hash is read in part only.
	hashOf(t, rdb, "large", slices.Collect(func(yield func(any) bool) {
		for i := range 4000 {
			if !yield(i) {
				return
			}
		}
	}), 0)
	contains(t, s.get(http.StatusConflict, "force-unlock?name=large"), "other data")
	resp, _ := s.do(http.MethodPost, "force-unlock?name=large", url.Values{"token": {token}, "confirm": {"large"}})
	if resp.StatusCode != http.StatusConflict {
		t.Errorf("forced with status %d", resp.StatusCode)
	}
	if rdb.HLen(t.Context(), "large").Val() != 2000 {
		t.Error("the large hash was changed")
	}
}

// TestLocksOfRedisson are locks, and can be forced.
func TestLocksOfRedisson(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	rdb := server.Client()
	s := newSite(t, newClient(t, server.Client(), core.WithPrefix("")), inspector.WithActions(asAda))
	for name, fields := range map[string][]any{
		"lock":    {thread, 1},
		"reading": {"mode", "read", thread, 1, "1b0b6f3a-5d6f-4c8e-9c52-5a2f0f3d9f12:7", 2},
		"writing": {"mode", "write", thread + ":write", 1},
	} {
		hashOf(t, rdb, name, fields, time.Hour)
		contains(t, s.get(http.StatusOK, "lock?name="+name), "force-unlock?name="+name, thread)
		contains(t, s.act(http.StatusOK, "force-unlock?name="+name, name), "The lock was taken")
		if rdb.Exists(t.Context(), name).Val() != 0 {
			t.Errorf("%s is still there", name)
		}
	}
}

func hashOf(t testing.TB, rdb *redis.Client, key string, fields []any, expiry time.Duration) {
	t.Helper()
	err := rdb.HSet(t.Context(), key, fields...).Err()
	if err == nil && expiry > 0 {
		err = rdb.PExpire(t.Context(), key, expiry).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
}
