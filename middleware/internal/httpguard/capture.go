package httpguard

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/httprecord"
	"github.com/holdfast-go/holdfast/middleware/internal/writer"
)

// sniffed is how many bytes net/http looks at to guess a Content-Type.
const sniffed = 512

// Capture holds back the answer of a handler until its record is written. So a client that has read its answer finds
// its request finished, and its next request does not collide with its last one. Make it with [NewCapture], and let
// the handler write to it. When the handler has returned, take the [Capture.Response] and call [Capture.Send]. If it
// has not returned normally, call [Capture.Abandon].
//
// An answer is passed through from the point where it grows too large, or where its handler flushes or takes over the
// connection. The body of a flushed answer is recorded all the same, up to the limit. The handler sees the behaviour
// of net/http: header fields set after the status count for trailers only, and the errors are the same. Like
// net/http's writer, a Capture must not be used by several goroutines at a time. What is written after
// [Capture.Send] or [Capture.Abandon] is passed through, so that no answer is lost.
//
// The real writer may send the header with the first byte of the body, or when its method WriteHeaderNow is called, as
// gin's does. A wrapper around such a writer, for instance one that compresses, changes the header in the first Write.
// So Capture does not send the header earlier either, and calls WriteHeader only if the handler has.
type Capture struct {
	real   http.ResponseWriter
	head   bool // the method is HEAD
	limit  int  // of the recorded body
	record bool
	before http.Header // what the header was before the handler

	status   int         // 0 until the handler has told it
	implicit bool        // the status is 200 by a write, and not by WriteHeader
	frozen   http.Header // the header at that moment
	declared int64       // the handler's Content-Length, or -1
	wanted   int64       // what the handler has asked to write while it was held back

	body        []byte // held back, or a copy of what was passed through
	passing     bool   // the handler writes to the real writer
	cut         bool   // the body is not all there any more
	contentType string // what net/http guesses from the first bytes, once they are gone
	hijacked    bool
	partial     bool // something of the answer was written around the capture
	lazy        int  // the status of an answer that has not begun, which is sent when the handler has returned; 0 if unknown
	lazySet     bool // the handler has set it
	failed      bool // the handler has reported errors and not begun an answer

	released bool // nothing is held back any more
}

// NewCapture returns a Capture of the answer to a request of that method, which will go to the real writer. Up to
// buffer bytes of body are held back, and recorded if record is true. A little more than a small buffer may be held
// back without being recorded.
func NewCapture(real http.ResponseWriter, method string, buffer int, record bool) *Capture {
	return &Capture{
		real: real, head: method == http.MethodHead, limit: max(buffer, 0), record: record,
		before: real.Header().Clone(), declared: -1,
	}
}

// Header returns the header of the real writer, not a copy. Handlers and middlewares may hold it from before, and
// trailers, which are set after the body, reach the client this way. [Capture.Send] and [Capture.Abandon] undo changes
// that a copy would have prevented.
func (c *Capture) Header() http.Header { return c.real.Header() }

// WriteHeader takes the status of the answer, and the present header. Further calls are ignored. Status 100 to 199
// goes to the client at once and is not the answer's status; 101 ends the capture. WriteHeader panics on a status that
// net/http panics on.
func (c *Capture) WriteHeader(status int) {
	switch {
	case c.passing:
		c.real.WriteHeader(status) // too late there as well, and the server's log tells about it
	case c.status != 0:
	case !httprecord.ValidStatus(status):
		panic(fmt.Sprintf("holdfast: invalid WriteHeader code %d", status))
	case status < http.StatusOK && status != http.StatusSwitchingProtocols:
		c.real.WriteHeader(status)
		c.headerNow()
	default:
		c.status, c.frozen = status, c.real.Header().Clone()
		if n, err := strconv.ParseInt(c.frozen.Get("Content-Length"), 10, 64); err == nil && n >= 0 {
			c.declared = n
		}
		if !c.implicit && (c.released || status == http.StatusSwitchingProtocols) {
			_, _ = c.pass(nil) // there is no body that could fail
		}
	}
}

// Wrote returns true if the handler has set a status, by a first write or by taking over the connection.
func (c *Capture) Wrote() bool { return c.status != 0 || c.hijacked }

// Hijacked returns true if the handler took over the connection.
func (c *Capture) Hijacked() bool { return c.hijacked }

// Held returns true if the handler has begun an answer, which is held back.
func (c *Capture) Held() bool { return c.status != 0 && !c.passing }

// Partial has the answer recorded without its body: for an adapter that finds that a part of it was written around the
// capture.
func (c *Capture) Partial() { c.partial = true }

// Ended is for frameworks in which a handler can set a status without sending it, and report errors: see [writer.Answer].
func (c *Capture) Ended(status int, answered, failed bool) {
	c.lazy, c.lazySet, c.failed = status, answered, failed && !c.Wrote()
}

// Handled returns how the handler has ended that has returned.
func (c *Capture) Handled() Handled {
	if c.failed {
		return Handled{Returned: true, Failed: true}
	}
	return Handled{Returned: true, Unanswered: !c.Wrote() && !c.lazySet, Response: c.Response()}
}

// Response returns the answer to be recorded, with status 200 if the handler has set none. Call it when the handler
// has returned.
func (c *Capture) Response() *Response {
	if !c.Wrote() {
		r := changes(cmp.Or(c.lazy, http.StatusOK), c.before, c.real.Header())
		r.unbegun = true
		// Something around the guard that has set the status of an error before, as gin does for paths without a route, is going
		// to write the text.
		r.Omitted = !c.lazySet && c.lazy >= http.StatusBadRequest
		return r
	}
	r := changes(c.status, c.before, c.frozen)
	contentType := c.contentType
	if !c.passing {
		contentType = c.guess(c.body)
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	} else if _, known := c.frozen["Content-Type"]; c.passing && !known && len(c.body) > 0 {
		r.Header["Content-Type"] = nil // the header was sent without one, and a replay must not guess it
	}
	switch {
	case c.hijacked, c.partial, c.status == http.StatusSwitchingProtocols:
		r.Omitted = true
	case c.head, !bodyAllowed(c.status): // no client gets one
	case c.cut, !c.whole(), len(c.body) > c.limit:
		r.Omitted = true
	case !c.record:
		r.Omitted = len(c.body) > 0
	default:
		r.Body, r.Omitted, r.streamed = c.body, c.trailers(), c.passing && c.declared < 0
	}
	return r
}

// trailers reports whether fields follow the body. A replay has none, and without them a client may take the answer for
// another one: the status of gRPC-Web is there.
func (c *Capture) trailers() bool {
	header := c.real.Header()
	for name := range header {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			return true
		}
	}
	for name := range listed(c.frozen["Trailer"]) {
		if len(header[name]) > 0 {
			return true
		}
	}
	return false
}

// whole reports whether the body has the length that the handler had announced. The client notices if it has
// not; from a record it would take what is there for everything.
func (c *Capture) whole() bool { return c.declared < 0 || c.declared == int64(len(c.body)) }

// guess returns the Content-Type that net/http sets for a body that begins like that, or "" if it sets none.
// It has to be recorded: a replay without body, or one through another middleware, would get another. A coding that was
// set around the capture is that of a middleware which compresses, and which guesses from these bytes too.
func (c *Capture) guess(begin []byte) string {
	_, known := c.frozen["Content-Type"]
	switch {
	case known, len(begin) == 0, !bodyAllowed(c.status), c.coded("Content-Encoding"), c.coded("Transfer-Encoding"):
		return ""
	}
	return http.DetectContentType(begin)
}

// coded reports whether the handler has set that field.
func (c *Capture) coded(name string) bool {
	return c.frozen.Get(name) != "" && !slices.Equal(c.frozen[name], c.before[name])
}

// bodyAllowed is net/http's: RFC 9110, section 6.4.1.
func bodyAllowed(status int) bool {
	return status >= http.StatusOK && status != http.StatusNoContent && status != http.StatusNotModified
}

// Send writes what was held back to the real writer. Call it once the record is written. It does nothing if the answer
// was already passed through. It leaves an answer without any write to the server, which sends an empty 200: see
// [Once.Do] for a handler that did not answer. The error is that of the connection.
func (c *Capture) Send() error {
	c.released = true
	switch {
	case c.passing:
		return nil
	case c.status == 0:
		if c.lazySet { // and something around the guard may add a body
			c.real.WriteHeader(c.lazy)
		}
		return nil
	}
	c.passing = true
	_, err := c.emit(nil)
	return err
}

// Pass sends what was held back, and passes the rest of the answer through: for an adapter that finds that something is
// about to be written around the capture. It does nothing if the handler has not begun an answer. The error is that of the
// connection.
func (c *Capture) Pass() error {
	if !c.Held() {
		return nil
	}
	_, err := c.pass(nil)
	return err
}

// Abandon is for a handler that has panicked or has not answered. It sends nothing of what was held back, and restores the header from
// before the handler. So the answer of a recovery around the guard contains nothing of the handler's answer. What was
// passed through cannot be taken back.
func (c *Capture) Abandon() {
	c.released = true
	if c.passing {
		return
	}
	replace(c.real.Header(), c.before)
	c.status, c.implicit, c.frozen, c.body, c.declared, c.wanted = 0, false, nil, nil, -1, 0
}

// pass sends what was held back and next, and lets the handler write to the real writer from now on. It returns
// how much of next was written. The bytes are needed to guess the Content-Type as net/http will.
func (c *Capture) pass(next []byte) (int, error) {
	begin := append(c.body[:len(c.body):len(c.body)], next[:min(len(next), sniffed)]...)
	c.contentType = c.guess(begin)
	c.passing = true
	n, err := c.emit(next)
	c.keep(next[:n], err)
	return n, err
}

// keep copies for the record what was passed through, until there is more than the limit. What the connection did not
// take ends that too: the handler may have stopped there, so nothing tells how much of its answer is missing.
func (c *Capture) keep(passed []byte, err error) {
	switch {
	case c.cut:
	case err != nil, !c.record, len(passed) > c.limit-len(c.body):
		c.body, c.cut = nil, true
	default:
		c.body = append(c.body, passed...)
	}
}

// emit writes status, header, the body so far, and next. The real writer gets to see the header as it was when
// the handler told the status; what the handler has changed since is put back behind the body, for that is where
// trailers are taken from. Only that: a middleware between here and the server may change the header when it sees
// the status.
func (c *Capture) emit(next []byte) (n int, err error) {
	header := c.real.Header()
	last := header.Clone()
	replace(header, c.frozen)
	empty := len(c.body)+len(next) == 0
	switch {
	case !c.implicit:
		c.real.WriteHeader(c.status)
		if empty {
			c.headerNow()
		}
	case empty: // as the handler has done
		_, err = c.real.Write(nil)
	}
	if len(c.body) > 0 {
		_, err = c.real.Write(c.body)
	}
	if err == nil && len(next) > 0 {
		n, err = c.real.Write(next)
	}
	for name, values := range changed(c.frozen, last) {
		header[name] = values
	}
	for name := range c.frozen {
		if _, kept := last[name]; !kept {
			delete(header, name)
		}
	}
	return n, err
}

// headerNow has the header sent, as net/http does when it gets the status.
func (c *Capture) headerNow() { headerNow(c.real) }

func headerNow(w http.ResponseWriter) {
	full := any(w)
	if behind := writer.Behind(w); behind != nil {
		full = behind
	}
	if w, waits := full.(interface{ WriteHeaderNow() }); waits {
		w.WriteHeaderNow()
	}
}
