package middleware_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/holdfast-go/holdfast/middleware"
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
		c := middleware.NewCapture(brokenFlusher{httptest.NewRecorder(), broken}, http.MethodPost, 1<<10, true)
		_, _ = io.WriteString(c, "one\n")
		if err := c.Flush(); !errors.Is(err, broken) {
			t.Errorf("%s: Flush returned %v", name, err)
		}
		want := middleware.Response{Omitted: broken != nil}
		if broken == nil {
			want.Body = []byte("one\n")
		}
		if got := c.Response(); got.Omitted != want.Omitted || string(got.Body) != string(want.Body) {
			t.Errorf("%s: omitted %v, body %q", name, got.Omitted, got.Body)
		}
	}
}
