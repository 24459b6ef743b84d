package writer

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// found are type assertions, by what a program calls the method for.
var found = map[set][]func(w http.ResponseWriter) bool{
	flush:  {is[http.Flusher], is[interface{ FlushError() error }]},
	hijack: {is[http.Hijacker]},
	notify: {is[interface{ CloseNotify() <-chan bool }]},
	push:   {is[http.Pusher]},
}

// always are those that every writer has.
var always = []func(w http.ResponseWriter) bool{
	is[io.StringWriter], is[io.ReaderFrom], is[interface{ Unwrap() http.ResponseWriter }],
	is[interface{ SetReadDeadline(time.Time) error }], is[interface{ SetWriteDeadline(time.Time) error }],
	is[interface{ EnableFullDuplex() error }],
}

func is[T any](w http.ResponseWriter) bool {
	_, ok := w.(T)
	return ok
}

// TestEverySet: a composed writer has the methods of its set, and no others but those that all have.
func TestEverySet(t *testing.T) {
	t.Parallel()
	w := Forward{httptest.NewRecorder()}
	for s := set(0); s <= every; s++ {
		composed := compose(s, w, nil)
		for ability, assertions := range found {
			for i, has := range assertions {
				if want := s&ability != 0; has(composed) != want {
					t.Errorf("set %04b: assertion %d of %04b is %v", s, i, ability, !want)
				}
			}
		}
		for i, has := range always {
			if !has(composed) {
				t.Errorf("set %04b: assertion %d of those of all writers is false", s, i)
			}
		}
		if got := direct(composed); got != s {
			t.Errorf("set %04b is read as %04b", s, got)
		}
	}
}

// TestEveryPairOfSets: whatever the other writer has itself, and whatever it reaches by unwrapping, the exposed one has
// and reaches the same. What it has besides returns the errors of the other writer, or writes as io.Copy does.
func TestEveryPairOfSets(t *testing.T) {
	t.Parallel()
	for methods := httpkit.Methods(0); methods <= httpkit.Every; methods++ {
		for inner := httpkit.Methods(0); inner <= httpkit.Every; inner++ {
			recorder := httptest.NewRecorder()
			outer := httpkit.WriterWith(methods, server{Forward{recorder}}, httpkit.WriterWith(inner, server{Forward{recorder}}, nil))
			w := Forward{outer}
			for name, exposed := range map[string]http.ResponseWriter{
				"opaque": Expose(w, outer), "transparent": ExposeTransparent(w, outer),
			} {
				if direct(exposed) != direct(outer) || reached(exposed) != reached(outer) {
					t.Fatalf("%s: %06b before %06b is exposed as %04b before %04b", name, methods, inner, direct(exposed), reached(exposed))
				}
				if Behind(exposed) != w {
					t.Fatalf("%s: what stands behind is %v", name, Behind(exposed))
				}
				if got, want := controlled(exposed), controlled(outer); got != want {
					t.Fatalf("%s: %06b before %06b can be controlled: %v, want %v", name, methods, inner, got, want)
				}
				if _, err := io.Copy(exposed, strings.NewReader("x")); err != nil {
					t.Fatal(err)
				}
			}
			if recorder.Body.String() != "xx" {
				t.Fatalf("%06b before %06b: body %q", methods, inner, recorder.Body)
			}
		}
	}
}

// controlled tells which methods of [http.ResponseController] are supported.
func controlled(w http.ResponseWriter) (supported [3]bool) {
	c := http.NewResponseController(w)
	for i, err := range []error{c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Time{}), c.EnableFullDuplex()} {
		supported[i] = !errors.Is(err, http.ErrNotSupported)
	}
	return supported
}

// server is a writer whose deadlines can be set.
type server struct{ Forward }

func (server) SetReadDeadline(time.Time) error  { return nil }
func (server) SetWriteDeadline(time.Time) error { return nil }
func (server) EnableFullDuplex() error          { return nil }

// TestUnwrapping: an exposed writer is not reached around, a transparent one leads to the other writer.
func TestUnwrapping(t *testing.T) {
	t.Parallel()
	real := httptest.NewRecorder()
	for _, outer := range []http.ResponseWriter{real, compose(hijack, Forward{real}, real)} {
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
