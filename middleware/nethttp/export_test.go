package httplock

import "net/http"

// Captured is a guard without lock: it captures the answer, runs the handler, hands out the record, and sends
// the answer.
func Captured(next http.Handler, buffer int, record bool, seen func(*Response)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := newCapture(w, r.Method, buffer, record)
		finished := false
		defer func() {
			if !finished {
				c.Abandon()
				return
			}
			seen(c.Response())
			_ = c.Send()
		}()
		next.ServeHTTP(c.exposed(), r)
		finished = true
	})
}

// Exposed is what a handler gets instead of w while its answer is captured.
func Exposed(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	return newCapture(w, r.Method, 1000, true).exposed()
}

// Told says what is known of a capture after that handler.
func Told(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) (wrote, hijacked bool) {
	c := newCapture(w, r.Method, 1000, true)
	next(c.exposed(), r)
	return c.Wrote(), c.hijacked
}

// Replay answers with a record.
func Replay(w http.ResponseWriter, r *Response) { replay(r, w) }

// Replayable reports whether a record can be sent again.
func Replayable(r *Response) bool { return replayable(r) }
