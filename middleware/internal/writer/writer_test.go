package writer

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// found are type assertions, by what a program calls the method for.
var found = map[Set][]func(w http.ResponseWriter) bool{
	Flush:    {is[http.Flusher], is[interface{ FlushError() error }]},
	Hijack:   {is[http.Hijacker]},
	Notify:   {is[interface{ CloseNotify() <-chan bool }]},
	ReadFrom: {is[io.ReaderFrom]},
	Push:     {is[http.Pusher]},
	Control: {
		is[interface{ SetReadDeadline(time.Time) error }], is[interface{ SetWriteDeadline(time.Time) error }],
		is[interface{ EnableFullDuplex() error }],
	},
}

func is[T any](w http.ResponseWriter) bool {
	_, ok := w.(T)
	return ok
}

// TestEverySet: a composed writer has the methods of its set, and no others.
func TestEverySet(t *testing.T) {
	t.Parallel()
	w := Forward{httptest.NewRecorder()}
	for s := Set(0); s <= Every; s++ {
		composed := Compose(s, w, nil)
		for ability, assertions := range found {
			for i, has := range assertions {
				if want := s&ability != 0; has(composed) != want {
					t.Errorf("set %06b: assertion %d of %06b is %v", s, i, ability, !want)
				}
			}
		}
		if got := direct(composed); got != s {
			t.Errorf("set %06b is read as %06b", s, got)
		}
	}
}

// TestEveryPairOfSets: whatever the other writer has itself, and whatever it reaches by unwrapping, the exposed one has
// and reaches the same.
func TestEveryPairOfSets(t *testing.T) {
	t.Parallel()
	w := Forward{httptest.NewRecorder()}
	for s := Set(0); s <= Every; s++ {
		for inner := Set(0); inner <= Every; inner++ {
			outer := Compose(s, w, Compose(inner, w, nil))
			for name, exposed := range map[string]http.ResponseWriter{
				"opaque": Expose(w, outer), "transparent": ExposeTransparent(w, outer),
			} {
				if has, reaches := direct(exposed), reached(exposed); has != s || reaches != s|inner {
					t.Fatalf("%s: %06b before %06b is exposed as %06b before %06b", name, s, inner, has, reaches)
				}
				if Behind(exposed) != w {
					t.Fatalf("%s: what stands behind is %v", name, Behind(exposed))
				}
			}
		}
	}
}

// TestUnwrapping: an exposed writer is not reached around, a transparent one leads to the other writer.
func TestUnwrapping(t *testing.T) {
	t.Parallel()
	real := httptest.NewRecorder()
	for _, outer := range []http.ResponseWriter{real, Compose(Hijack, Forward{real}, real)} {
		last := func(w http.ResponseWriter) (last http.ResponseWriter) {
			for ; w != nil; w = unwrap(w) {
				last = w
			}
			return last
		}
		if last(Expose(Forward{outer}, outer)) == http.ResponseWriter(real) {
			t.Error("the other writer is reached")
		}
		if last(ExposeTransparent(Forward{outer}, outer)) != http.ResponseWriter(real) {
			t.Error("the other writer is not reached")
		}
	}
}
