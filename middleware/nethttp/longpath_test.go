package httplock

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
)

// TestLongPathCostsLittle: a path as long as net/http takes it costs no multiple of that many bytes. It is not parallel,
// since it counts what the process allocates.
func TestLongPathCostsLittle(t *testing.T) {
	const long = 900 << 10
	route := routing{Pattern: "POST /orders/{id}/{rest...}"}
	for name, unit := range map[string]string{"segments": "a/", "slashes": "/", "escapes": "%61/", "one segment": "a", "dots": "../"} {
		for _, decoded := range []bool{false, true} {
			route.Decoded = decoded
			path := "/orders/7/" + strings.Repeat(unit, long/len(unit))
			r := httptest.NewRequest(http.MethodPost, path, nil)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, byRoute := route.Key(r)
			_, byPath := route.PathKey(r, "id", "7")
			runtime.ReadMemStats(&after)
			if !errors.Is(byRoute, ErrKeyInvalid) || !errors.Is(byPath, ErrKeyInvalid) {
				t.Errorf("%s: errors %v, %v, want ErrKeyInvalid", name, byRoute, byPath)
			}
			if cost := after.TotalAlloc - before.TotalAlloc; cost > 64<<10 {
				t.Errorf("%s: the keys of a path of %d KiB cost %d KiB", name, len(path)>>10, cost>>10)
			}
		}
	}
}

// TestLongPathWithoutRoute: a path that makes no key costs a few copies of it.
func TestLongPathWithoutRoute(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/"+strings.Repeat("a/", 450<<10), nil)
	key, err := NewKey("cart", "7")
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_ = new(settings).payload(r)
	_ = ownerOf(key, addressOf(r))
	runtime.ReadMemStats(&after)
	if cost := after.TotalAlloc - before.TotalAlloc; cost > 8<<20 {
		t.Errorf("%d MiB", cost>>20)
	}
}

// TestPathLengthOfKeys: a path of 8 KiB has a key.
func TestPathLengthOfKeys(t *testing.T) {
	t.Parallel()
	route := routing{Pattern: "POST /files/{rest...}"}
	for size, want := range map[int]error{8192: nil, 8193: ErrKeyInvalid} {
		path := "/files/" + strings.Repeat("a", size-len("/files/"))
		if _, err := route.Key(httptest.NewRequest(http.MethodPost, path, nil)); !errors.Is(err, want) {
			t.Errorf("%d bytes: error %v, want %v", size, err, want)
		}
	}
}
