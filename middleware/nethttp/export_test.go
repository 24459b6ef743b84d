package httplock

import (
	"net/http"

	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
)

// Captured is a guard without lock: it captures the answer, runs the handler, hands out the record, and sends
// the answer.
func Captured(next http.Handler, buffer int, record bool, seen func(*httpguard.Response)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := newCapture(w, r, buffer, record)
		finished := false
		defer func() {
			if !finished {
				c.abandon()
				return
			}
			seen(c.response())
			c.send()
		}()
		next.ServeHTTP(c.exposed(), r)
		finished = true
	})
}

// Exposed is what a handler gets instead of w while its answer is captured.
func Exposed(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	return newCapture(w, r, 1000, true).exposed()
}

// Told says what is known of a capture after that handler.
func Told(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) (wrote, hijacked bool) {
	c := newCapture(w, r, 1000, true)
	next(c.exposed(), r)
	return c.capture.Wrote(), c.capture.Hijacked()
}

// Replay answers with a record.
func Replay(w http.ResponseWriter, r *httpguard.Response) { replay(w, r) }
