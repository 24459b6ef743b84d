package httplock

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// brokenFlusher is a writer whose connection takes bytes into its buffer, and breaks when they are sent.
type brokenFlusher struct {
	http.ResponseWriter
	err error
}

func (w brokenFlusher) FlushError() error { return w.err }

// TestFailedFlushLeavesAPart: a handler that streams may stop at the first flush that fails, without any write that does.
func TestFailedFlushLeavesAPart(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]error{"sent": nil, "failed": errors.New("the client has left")} {
		c := newCapture(brokenFlusher{httptest.NewRecorder(), broken}, http.MethodPost, 1<<10, true)
		_, _ = io.WriteString(c, "one\n")
		if err := c.FlushError(); !errors.Is(err, broken) {
			t.Errorf("%s: Flush returned %v", name, err)
		}
		want := Response{Omitted: broken != nil}
		if broken == nil {
			want.Body = []byte("one\n")
		}
		if got := c.Response(); got.Omitted != want.Omitted || string(got.Body) != string(want.Body) {
			t.Errorf("%s: omitted %v, body %q", name, got.Omitted, got.Body)
		}
	}
}

// TestFailedFlushOfAWholeAnswer: all of the announced bytes were written before.
func TestFailedFlushOfAWholeAnswer(t *testing.T) {
	t.Parallel()
	c := newCapture(brokenFlusher{httptest.NewRecorder(), io.ErrClosedPipe}, http.MethodPost, 1<<10, true)
	c.Header().Set("Content-Length", "4")
	_, _ = io.WriteString(c, "one\n")
	if err := c.FlushError(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Flush returned %v", err)
	}
	if got := c.Response(); got.Omitted || string(got.Body) != "one\n" {
		t.Errorf("omitted %v, body %q", got.Omitted, got.Body)
	}
}

// TestReadFromTellsTheErrorOfItsSource: the error of a broken download wraps io.EOF, and is no end of the source.
func TestReadFromTellsTheErrorOfItsSource(t *testing.T) {
	t.Parallel()
	broken := fmt.Errorf("Get %q: %w", "http://example.com", io.EOF)
	for name, size := range map[string]int{"held back": 4, "passed through": 4 << 10} {
		for _, err := range []error{nil, broken, io.ErrUnexpectedEOF} {
			src := io.MultiReader(strings.NewReader(strings.Repeat("x", size)), failingReader{err})
			c := newCapture(httptest.NewRecorder(), http.MethodPost, 1<<10, true)
			if n, got := c.ReadFrom(src); int(n) != size || !errors.Is(got, err) {
				t.Errorf("%s: %d bytes with the error %v, want %d with %v", name, n, got, size, err)
			}
		}
	}
}

// failingReader ends with err, or io.EOF if that is nil.
type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, cmp.Or(r.err, io.EOF) }
