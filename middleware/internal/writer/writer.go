// Package writer makes the writers of the guards: each stands in front of another writer, changes some of its methods, and has
// the optional methods that the other one has.
//
// A program finds out by a type assertion whether a writer can flush, hijack, push or report that the client has left,
// so a writer has these methods only if the other one has. It has ReadFrom in any case, because io.Copy writes to the
// other writer all the same, and the methods of [http.ResponseController], which return [http.ErrNotSupported] if the
// other writer has none.
package writer

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"time"
)

// Full is a writer with all optional methods. [Expose] shows a choice of them.
type Full interface {
	http.ResponseWriter
	io.StringWriter
	flusher
	http.Hijacker
	notifier
	io.ReaderFrom
	http.Pusher
	controller
}

type flusher interface {
	http.Flusher
	FlushError() error
}

// notifier is http.CloseNotifier, which is deprecated and which gin's Stream still needs.
type notifier interface{ CloseNotify() <-chan bool }

// controller has what [http.ResponseController] sets on a connection.
type controller interface {
	SetReadDeadline(deadline time.Time) error
	SetWriteDeadline(deadline time.Time) error
	EnableFullDuplex() error
}

// set is a set of optional methods.
type set uint8

// The methods that programs ask for by type assertions; flush is also FlushError.
const (
	flush set = 1 << iota
	hijack
	notify
	push

	every = 1<<iota - 1
)

// direct returns the optional methods that w has itself.
func direct(w http.ResponseWriter) (s set) {
	if _, found := w.(http.Flusher); found {
		s |= flush
	}
	if _, found := w.(http.Hijacker); found {
		s |= hijack
	}
	if _, found := w.(notifier); found {
		s |= notify
	}
	if _, found := w.(http.Pusher); found {
		s |= push
	}
	return s
}

// reached returns the optional methods that w has, or a writer that it unwraps to.
func reached(w http.ResponseWriter) (s set) {
	if Reaches[interface{ FlushError() error }](w) {
		s = flush // without a method Flush
	}
	for ; w != nil; w = unwrap(w) {
		s |= direct(w)
	}
	return s
}

// Reaches reports whether w, or a writer that it unwraps to, has the methods of T: whether [http.ResponseController] would
// find them.
func Reaches[T any](w http.ResponseWriter) bool {
	_, found := reach[T](w)
	return found
}

func reach[T any](w http.ResponseWriter) (T, bool) {
	for ; w != nil; w = unwrap(w) {
		if t, found := w.(T); found {
			return t, true
		}
	}
	var none T
	return none, false
}

// unwrap returns the writer that w stands in front of, nil if it does not say.
func unwrap(w http.ResponseWriter) http.ResponseWriter {
	if outer, wraps := w.(interface{ Unwrap() http.ResponseWriter }); wraps {
		return outer.Unwrap()
	}
	return nil
}

// Expose returns a writer with the methods of w, of the optional ones those that outer has. A program finds the same on both, by
// type assertions and by [http.ResponseController]. Unwrapping the writer reaches what unwrapping outer reaches,
// always by the methods of w.
func Expose(w Full, outer http.ResponseWriter) http.ResponseWriter {
	return exposed(w, outer, struct{ http.ResponseWriter }{w})
}

// ExposeTransparent is Expose for a w that only watches: unwrapping the writer leads to outer in the end.
func ExposeTransparent(w Full, outer http.ResponseWriter) http.ResponseWriter {
	return exposed(w, outer, outer)
}

func exposed(w Full, outer, last http.ResponseWriter) http.ResponseWriter {
	has, reaches := direct(outer), reached(outer)
	if has == reaches {
		return compose(has, w, last)
	}
	return compose(has, w, compose(reaches, w, last))
}

// Behind returns what stands behind a writer of [Expose], nil if w is another writer.
func Behind(w http.ResponseWriter) Full {
	if p, ok := w.(interface{ behind() Full }); ok {
		return p.behind()
	}
	return nil
}

// Answer is what stands behind the writer that a guard hands to a handler, for frameworks with writers of their own.
type Answer interface {
	Full
	// Ended returns what the framework knows of a handler that has returned: the status that it sends in the end, whether the
	// handler has answered by it, which includes that the answer has begun, and whether the handler has reported errors that
	// something around the guard answers.
	Ended(status int, answered, failed bool)
}

// Capture is the Answer of a guard that holds the answer back until it is recorded.
type Capture interface {
	Answer
	Held() bool // an answer has begun and is held back
	Partial()   // a part of the answer was written around the capture: its body is not recorded
}

// Host stands behind the writer that a framework hands to a guard, if it has to know more than is written there.
type Host interface {
	Full
	// Answered is called when the guard has made the key and read the body. It reports whether something has answered meanwhile in
	// place of the guard.
	Answered() bool
	// Refused is called before a refusal is answered.
	Refused(conflict error)
	// Abandoned is called when nothing of the answer of the handler is sent, whatever was written to the capture of it.
	Abandoned()
}

// plain has what all writers have.
type plain struct {
	w    Full
	next http.ResponseWriter
}

func (p plain) Header() http.Header               { return p.w.Header() }
func (p plain) WriteHeader(status int)            { p.w.WriteHeader(status) }
func (p plain) Write(b []byte) (int, error)       { return p.w.Write(b) }
func (p plain) WriteString(s string) (int, error) { return p.w.WriteString(s) }
func (p plain) Unwrap() http.ResponseWriter       { return p.next }
func (p plain) behind() Full                      { return p.w }

func (p plain) ReadFrom(src io.Reader) (int64, error) { return p.w.ReadFrom(src) }
func (p plain) SetReadDeadline(by time.Time) error    { return p.w.SetReadDeadline(by) }
func (p plain) SetWriteDeadline(by time.Time) error   { return p.w.SetWriteDeadline(by) }
func (p plain) EnableFullDuplex() error               { return p.w.EnableFullDuplex() }

// Forward passes everything on to the writer that it has. Embed it and change some of its methods: if Flush or Write is
// changed, also FlushError, or WriteString and ReadFrom.
type Forward struct{ http.ResponseWriter }

// WriteString writes s.
func (f Forward) WriteString(s string) (int, error) { return io.WriteString(f.ResponseWriter, s) }

// ReadFrom writes the content of src, by sendfile where the other writer does so.
func (f Forward) ReadFrom(src io.Reader) (int64, error) { return io.Copy(f.ResponseWriter, src) }

// Flush sends what the other writer has buffered.
func (f Forward) Flush() { _ = f.FlushError() }

// FlushError is Flush, and returns the error.
func (f Forward) FlushError() error { return http.NewResponseController(f.ResponseWriter).Flush() }

// Hijack takes over the connection.
func (f Forward) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(f.ResponseWriter).Hijack()
}

// CloseNotify returns a channel that receives when the client leaves; it blocks for ever if the other writer has none.
func (f Forward) CloseNotify() <-chan bool {
	if n, found := reach[notifier](f.ResponseWriter); found {
		return n.CloseNotify()
	}
	return nil
}

// Push begins a server push.
func (f Forward) Push(target string, opts *http.PushOptions) error {
	if p, found := reach[http.Pusher](f.ResponseWriter); found {
		return p.Push(target, opts)
	}
	return http.ErrNotSupported
}

// SetReadDeadline sets the deadline for reading the request.
func (f Forward) SetReadDeadline(deadline time.Time) error {
	return http.NewResponseController(f.ResponseWriter).SetReadDeadline(deadline)
}

// SetWriteDeadline sets the deadline for writing the answer.
func (f Forward) SetWriteDeadline(deadline time.Time) error {
	return http.NewResponseController(f.ResponseWriter).SetWriteDeadline(deadline)
}

// EnableFullDuplex lets the handler read the request while it answers.
func (f Forward) EnableFullDuplex() error {
	return http.NewResponseController(f.ResponseWriter).EnableFullDuplex()
}

var _ Full = Forward{}

// compose returns a writer with the methods of w, of the optional ones only the set, that unwraps to next.
// A type assertion finds only methods that a type has, so each set needs a type of its own.
func compose(s set, w Full, next http.ResponseWriter) http.ResponseWriter {
	p := plain{w, next}
	switch s {
	case flush:
		return struct {
			plain
			flusher
		}{p, w}
	case hijack:
		return struct {
			plain
			http.Hijacker
		}{p, w}
	case flush | hijack:
		return struct {
			plain
			flusher
			http.Hijacker
		}{p, w, w}
	case notify:
		return struct {
			plain
			notifier
		}{p, w}
	case flush | notify:
		return struct {
			plain
			flusher
			notifier
		}{p, w, w}
	case hijack | notify:
		return struct {
			plain
			http.Hijacker
			notifier
		}{p, w, w}
	case flush | hijack | notify:
		return struct {
			plain
			flusher
			http.Hijacker
			notifier
		}{p, w, w, w}
	case push:
		return struct {
			plain
			http.Pusher
		}{p, w}
	case flush | push:
		return struct {
			plain
			flusher
			http.Pusher
		}{p, w, w}
	case hijack | push:
		return struct {
			plain
			http.Hijacker
			http.Pusher
		}{p, w, w}
	case flush | hijack | push:
		return struct {
			plain
			flusher
			http.Hijacker
			http.Pusher
		}{p, w, w, w}
	case notify | push:
		return struct {
			plain
			notifier
			http.Pusher
		}{p, w, w}
	case flush | notify | push:
		return struct {
			plain
			flusher
			notifier
			http.Pusher
		}{p, w, w, w}
	case hijack | notify | push:
		return struct {
			plain
			http.Hijacker
			notifier
			http.Pusher
		}{p, w, w, w}
	case every:
		return struct {
			plain
			flusher
			http.Hijacker
			notifier
			http.Pusher
		}{p, w, w, w, w}
	}
	return p
}
