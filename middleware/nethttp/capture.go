package httplock

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/httprecord"
	"github.com/holdfast-go/holdfast/middleware/internal/writer"
)

// sniffed is how many bytes net/http looks at to guess a Content-Type.
const sniffed = 512

// capture holds back the answer of a handler until its record is written. So a client that has read its answer finds
// its request finished, and its next request does not collide with its last one. Make it with [newCapture], and let
// the handler write to it. When the handler has returned, take the [capture.Response] and call [capture.Send]. If it
// has not returned normally, call [capture.Abandon].
//
// An answer is passed through from the point where it grows too large, or where its handler flushes or takes over the
// connection. The body of a flushed answer is recorded all the same, up to the limit. The handler sees the behaviour
// of net/http: header fields set after the status count for trailers only, and the errors are the same. Like
// net/http's writer, a capture must not be used by several goroutines at a time. What is written after
// [capture.Send] or [capture.Abandon] is passed through, so that no answer is lost.
//
// The real writer may send the header with the first byte of the body, or when its method WriteHeaderNow is called, as
// gin's does. A wrapper around such a writer, for instance one that compresses, changes the header in the first Write.
// So capture does not send the header earlier either, and calls WriteHeader only if the handler has.
type capture struct {
	writer.Forward      // to the real writer
	head           bool // the method is HEAD
	limit          int  // of the recorded body
	record         bool
	before         http.Header // what the header was before the handler

	status   int         // 0 until the handler has set it
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

// newCapture returns a capture of the answer to a request of that method, which will go to the real writer. Up to
// buffer bytes of body are held back, and recorded if record is true. A little more than a small buffer may be held
// back without being recorded.
func newCapture(real http.ResponseWriter, method string, buffer int, record bool) *capture {
	return &capture{
		Forward: writer.Forward{ResponseWriter: real}, head: method == http.MethodHead, limit: max(buffer, 0), record: record,
		before: real.Header().Clone(), declared: -1,
	}
}

// exposed returns the writer for the handler, with the optional methods of the real one. Its Unwrap does not lead to the real
// writer: [http.ResponseController] would reach around the capture, and the client would get another status than the record.
//
// One thing of net/http's writer is lost on all that wrap it: [http.MaxBytesReader] no longer closes the
// connection of a client that sends too much. A guard has read the body under its own limit before.
func (c *capture) exposed() http.ResponseWriter { return writer.Expose(c, c.ResponseWriter) }

// Header returns the header of the real writer, not a copy. Handlers and middlewares may hold it from before, and
// trailers, which are set after the body, reach the client this way. [capture.Send] and [capture.Abandon] undo changes
// that a copy would have prevented.
func (c *capture) Header() http.Header { return c.ResponseWriter.Header() }

// WriteHeader takes the status of the answer, and the present header. Further calls are ignored. Status 100 to 199
// goes to the client at once and is not the answer's status; 101 ends the capture. WriteHeader panics on a status that
// net/http panics on.
func (c *capture) WriteHeader(status int) {
	switch {
	case c.passing:
		c.ResponseWriter.WriteHeader(status) // too late there as well, and the server logs it
	case c.status != 0:
	case !httprecord.ValidStatus(status):
		panic(fmt.Sprintf("holdfast: invalid WriteHeader code %d", status))
	case status < http.StatusOK && status != http.StatusSwitchingProtocols:
		c.ResponseWriter.WriteHeader(status)
		c.headerNow()
	default:
		c.status, c.frozen = status, c.ResponseWriter.Header().Clone()
		if n, err := strconv.ParseInt(c.frozen.Get("Content-Length"), 10, 64); err == nil && n >= 0 {
			c.declared = n
		}
		if !c.implicit && (c.released || status == http.StatusSwitchingProtocols) {
			_, _ = c.pass(nil) // there is no body that could fail
		}
	}
}

// Wrote returns true if the handler has set a status, by a first write or by taking over the connection.
func (c *capture) Wrote() bool { return c.status != 0 || c.hijacked }

// Held returns true if the handler has begun an answer, which is held back.
func (c *capture) Held() bool { return c.status != 0 && !c.passing }

// Partial has the answer recorded without its body: for a framework that finds that a part of it was written around the
// capture.
func (c *capture) Partial() { c.partial = true }

// Ended is for frameworks in which a handler can set a status without sending it, and report errors: see [writer.Answer].
func (c *capture) Ended(status int, answered, failed bool) {
	c.lazy, c.lazySet, c.failed = status, answered, failed && !c.Wrote()
}

// Handled returns how the handler has ended that has returned.
func (c *capture) Handled() Handled {
	if c.failed {
		return Handled{Returned: true, Failed: true}
	}
	return Handled{Returned: true, Unanswered: !c.Wrote() && !c.lazySet, Response: c.Response()}
}

// Response returns the answer to be recorded, with status 200 if the handler has set none. Call it when the handler
// has returned.
func (c *capture) Response() *Response {
	if !c.Wrote() {
		r := changes(cmp.Or(c.lazy, http.StatusOK), c.before, c.ResponseWriter.Header())
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
func (c *capture) trailers() bool {
	header := c.ResponseWriter.Header()
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
func (c *capture) whole() bool { return c.declared < 0 || c.declared == int64(len(c.body)) }

// guess returns the Content-Type that net/http sets for a body that begins like that, or "" if it sets none.
// It has to be recorded: a replay without body, or one through another middleware, would get another. A coding that was
// set around the capture comes from a middleware which compresses, and which guesses from these bytes too.
func (c *capture) guess(begin []byte) string {
	_, known := c.frozen["Content-Type"]
	switch {
	case known, len(begin) == 0, !bodyAllowed(c.status), c.coded("Content-Encoding"), c.coded("Transfer-Encoding"):
		return ""
	}
	return http.DetectContentType(begin)
}

// coded reports whether the handler has set that field.
func (c *capture) coded(name string) bool {
	return c.frozen.Get(name) != "" && !slices.Equal(c.frozen[name], c.before[name])
}

// bodyAllowed is net/http's: RFC 9110, section 6.4.1.
func bodyAllowed(status int) bool {
	return status >= http.StatusOK && status != http.StatusNoContent && status != http.StatusNotModified
}

// Send writes what was held back to the real writer. Call it once the record is written. It does nothing if the answer
// was already passed through. It leaves an answer without any write to the server, which sends an empty 200: see
// [once.Do] for a handler that did not answer. The error is the connection's.
func (c *capture) Send() error {
	c.released = true
	switch {
	case c.passing:
		return nil
	case c.status == 0:
		if c.lazySet { // and something around the guard may add a body
			c.ResponseWriter.WriteHeader(c.lazy)
		}
		return nil
	}
	c.passing = true
	_, err := c.emit(nil)
	return err
}

// Abandon is for a handler that has panicked or has not answered. It sends nothing of what was held back, and restores
// the header from before the handler. So the answer of a recovery around the guard contains nothing of the handler's
// answer. What was passed through cannot be taken back.
func (c *capture) Abandon() {
	c.released = true
	if c.passing {
		return
	}
	replace(c.ResponseWriter.Header(), c.before)
	if host, hosted := writer.Behind(c.ResponseWriter).(writer.Host); hosted {
		host.Abandoned()
	}
	c.status, c.implicit, c.frozen, c.body, c.declared, c.wanted = 0, false, nil, nil, -1, 0
}

// pass sends what was held back and next, and lets the handler write to the real writer from now on. It returns
// how much of next was written. The bytes are needed to guess the Content-Type as net/http will.
func (c *capture) pass(next []byte) (int, error) {
	begin := append(c.body[:len(c.body):len(c.body)], next[:min(len(next), sniffed)]...)
	c.contentType = c.guess(begin)
	c.passing = true
	n, err := c.emit(next)
	c.keep(next[:n], err)
	return n, err
}

// keep copies for the record what was passed through, until there is more than the limit. What the connection did not
// take ends that too: the handler may have stopped there, so nothing shows how much of its answer is missing.
func (c *capture) keep(passed []byte, err error) {
	switch {
	case c.cut:
	case err != nil, !c.record, len(passed) > c.limit-len(c.body):
		c.body, c.cut = nil, true
	default:
		c.body = append(c.body, passed...)
	}
}

// emit writes status, header, the body so far, and next. The real writer gets to see the header as it was when
// the handler set the status; what the handler has changed since is put back behind the body, for that is where
// trailers are taken from. Only that: a middleware between here and the server may change the header when it sees
// the status.
func (c *capture) emit(next []byte) (n int, err error) {
	header := c.ResponseWriter.Header()
	var last http.Header // if it has changed since
	if !maps.EqualFunc(header, c.frozen, slices.Equal) {
		last = header.Clone()
		replace(header, c.frozen)
	}
	empty := len(c.body)+len(next) == 0
	switch {
	case !c.implicit:
		c.ResponseWriter.WriteHeader(c.status)
		if empty {
			c.headerNow()
		}
	case empty: // as the handler has done
		_, err = c.ResponseWriter.Write(nil)
	}
	if len(c.body) > 0 {
		_, err = c.ResponseWriter.Write(c.body)
	}
	if err == nil && len(next) > 0 {
		n, err = c.ResponseWriter.Write(next)
	}
	if last == nil {
		return n, err
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
func (c *capture) headerNow() { headerNow(c.ResponseWriter) }

func headerNow(w http.ResponseWriter) {
	full := any(w)
	if behind := writer.Behind(w); behind != nil {
		full = behind
	}
	if w, waits := full.(interface{ WriteHeaderNow() }); waits {
		w.WriteHeaderNow()
	}
}

// Write holds p back or passes it through. The errors are net/http's: [http.ErrBodyNotAllowed] for status 204
// and 304, [http.ErrContentLength] beyond the handler's own Content-Length, [http.ErrHijacked], and the errors of
// the connection once the answer is passed through.
func (c *capture) Write(p []byte) (int, error) {
	if c.hijacked {
		return 0, http.ErrHijacked
	}
	if c.status == 0 {
		c.begin(c.released)
	}
	switch {
	case c.passing:
		n, err := c.ResponseWriter.Write(p)
		c.keep(p[:n], err)
		return n, err
	case len(p) == 0:
		return 0, nil
	case !bodyAllowed(c.status):
		return 0, http.ErrBodyNotAllowed
	}
	c.wanted += int64(len(p)) // what was refused counts as well, as in net/http
	if c.declared >= 0 && c.wanted > c.declared {
		return 0, http.ErrContentLength
	}
	if len(p) <= c.room() {
		c.body = append(c.body, p...)
		return len(p), nil
	}
	return c.pass(p)
}

// begin takes status 200, which the handler has not set. If the answer passes through, what the handler does next sends the
// header: a middleware around the capture, for instance one that compresses, may change it then.
func (c *capture) begin(passes bool) {
	c.implicit = true
	c.WriteHeader(http.StatusOK)
	c.passing = passes
}

// WriteString is Write.
func (c *capture) WriteString(s string) (int, error) {
	if c.passing && c.cut && !c.hijacked {
		return io.WriteString(c.ResponseWriter, s)
	}
	return c.Write([]byte(s))
}

// ReadFrom writes the content of src. Once no more of it is recorded, the real writer may use sendfile.
func (c *capture) ReadFrom(src io.Reader) (int64, error) {
	if c.hijacked {
		return 0, http.ErrHijacked
	}
	var held int64
	if !c.passing || !c.cut {
		// One byte more than there is room for: with that, Write passes the answer through and records no more. It uses no
		// CopyN, whose io.EOF for a short source would hide an error of the source that wraps io.EOF, as url.Error does.
		begin := int64(c.room()) + 1
		n, err := io.Copy(writerFunc(c.Write), io.LimitReader(src, begin))
		if n < begin || err != nil {
			return n, err
		}
		held = n
	}
	passed, err := io.Copy(c.ResponseWriter, src)
	return held + passed, err
}

// writerFunc keeps io.Copy from calling ReadFrom again.
type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// room is how many bytes can still be held back. It is never less than net/http guesses the Content-Type from:
// whatever the limit, the guess is made from the same bytes.
func (c *capture) room() int { return max(c.limit, sniffed) - len(c.body) }

// Flush is FlushError.
func (c *capture) Flush() { _ = c.FlushError() }

// FlushError sends what was held back and passes the rest of the answer through. If the real writer cannot flush, it fails
// with [http.ErrNotSupported] and changes nothing.
func (c *capture) FlushError() error {
	switch {
	case c.hijacked:
		return http.ErrHijacked
	case !c.canFlush():
		return http.ErrNotSupported
	case c.status == 0:
		c.begin(true) // the flush sends the header
	}
	if !c.passing {
		if _, err := c.pass(nil); err != nil {
			return err
		}
	}
	err := http.NewResponseController(c.ResponseWriter).Flush()
	if err != nil && (c.declared < 0 || !c.whole()) {
		c.keep(nil, err)
	}
	return err
}

// Hijack sends what was held back and lets the handler take over the connection. If the real writer cannot do that, it
// fails with [http.ErrNotSupported] and changes nothing.
func (c *capture) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if !c.canHijack() {
		return nil, nil, http.ErrNotSupported
	}
	if c.status != 0 && !c.passing {
		if _, err := c.pass(nil); err != nil {
			return nil, nil, err
		}
	}
	conn, buffered, err := http.NewResponseController(c.ResponseWriter).Hijack()
	if err == nil {
		c.hijacked, c.passing, c.cut, c.body = true, true, true, nil
	}
	return conn, buffered, err
}

// canFlush reports whether the real writer, or one that it unwraps to, can flush.
func (c *capture) canFlush() bool {
	return writer.Reaches[http.Flusher](c.ResponseWriter) || writer.Reaches[interface{ FlushError() error }](c.ResponseWriter)
}

// canHijack reports whether the real writer, or one that it unwraps to, lets its connection be taken over.
func (c *capture) canHijack() bool { return writer.Reaches[http.Hijacker](c.ResponseWriter) }
