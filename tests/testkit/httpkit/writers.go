package httpkit

import (
	"io"
	"net/http"
	"time"
)

// FullWriter is a writer with all optional methods that writers of servers may have.
type FullWriter interface {
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

type notifier interface{ CloseNotify() <-chan bool }

type controller interface {
	SetReadDeadline(deadline time.Time) error
	SetWriteDeadline(deadline time.Time) error
	EnableFullDuplex() error
}

// Methods is a set of optional methods of a writer.
type Methods uint8

// The optional methods. Flush is also FlushError. Control has SetReadDeadline, SetWriteDeadline and EnableFullDuplex. Every has all
// of them.
const (
	Flush Methods = 1 << iota
	Hijack
	Notify
	ReadFrom
	Push
	Control

	Every = 1<<iota - 1
)

// plain has what all writers have.
type plain struct {
	w    FullWriter
	next http.ResponseWriter
}

func (p plain) Header() http.Header               { return p.w.Header() }
func (p plain) WriteHeader(status int)            { p.w.WriteHeader(status) }
func (p plain) Write(b []byte) (int, error)       { return p.w.Write(b) }
func (p plain) WriteString(s string) (int, error) { return p.w.WriteString(s) }
func (p plain) Unwrap() http.ResponseWriter       { return p.next }

// WriterWith returns a writer of a server with the methods of w, of the optional ones only the set, that unwraps to next.
// A type assertion finds only methods that a type has, so each set needs a type of its own.
func WriterWith(s Methods, w FullWriter, next http.ResponseWriter) http.ResponseWriter {
	p := plain{w, next}
	switch s {
	case Flush:
		return struct {
			plain
			flusher
		}{p, w}
	case Hijack:
		return struct {
			plain
			http.Hijacker
		}{p, w}
	case Flush | Hijack:
		return struct {
			plain
			flusher
			http.Hijacker
		}{p, w, w}
	case Notify:
		return struct {
			plain
			notifier
		}{p, w}
	case Flush | Notify:
		return struct {
			plain
			flusher
			notifier
		}{p, w, w}
	case Hijack | Notify:
		return struct {
			plain
			http.Hijacker
			notifier
		}{p, w, w}
	case Flush | Hijack | Notify:
		return struct {
			plain
			flusher
			http.Hijacker
			notifier
		}{p, w, w, w}
	case ReadFrom:
		return struct {
			plain
			io.ReaderFrom
		}{p, w}
	case Flush | ReadFrom:
		return struct {
			plain
			flusher
			io.ReaderFrom
		}{p, w, w}
	case Hijack | ReadFrom:
		return struct {
			plain
			http.Hijacker
			io.ReaderFrom
		}{p, w, w}
	case Flush | Hijack | ReadFrom:
		return struct {
			plain
			flusher
			http.Hijacker
			io.ReaderFrom
		}{p, w, w, w}
	case Notify | ReadFrom:
		return struct {
			plain
			notifier
			io.ReaderFrom
		}{p, w, w}
	case Flush | Notify | ReadFrom:
		return struct {
			plain
			flusher
			notifier
			io.ReaderFrom
		}{p, w, w, w}
	case Hijack | Notify | ReadFrom:
		return struct {
			plain
			http.Hijacker
			notifier
			io.ReaderFrom
		}{p, w, w, w}
	case Flush | Hijack | Notify | ReadFrom:
		return struct {
			plain
			flusher
			http.Hijacker
			notifier
			io.ReaderFrom
		}{p, w, w, w, w}
	case Push:
		return struct {
			plain
			http.Pusher
		}{p, w}
	case Flush | Push:
		return struct {
			plain
			flusher
			http.Pusher
		}{p, w, w}
	case Hijack | Push:
		return struct {
			plain
			http.Hijacker
			http.Pusher
		}{p, w, w}
	case Flush | Hijack | Push:
		return struct {
			plain
			flusher
			http.Hijacker
			http.Pusher
		}{p, w, w, w}
	case Notify | Push:
		return struct {
			plain
			notifier
			http.Pusher
		}{p, w, w}
	case Flush | Notify | Push:
		return struct {
			plain
			flusher
			notifier
			http.Pusher
		}{p, w, w, w}
	case Hijack | Notify | Push:
		return struct {
			plain
			http.Hijacker
			notifier
			http.Pusher
		}{p, w, w, w}
	case Flush | Hijack | Notify | Push:
		return struct {
			plain
			flusher
			http.Hijacker
			notifier
			http.Pusher
		}{p, w, w, w, w}
	case ReadFrom | Push:
		return struct {
			plain
			io.ReaderFrom
			http.Pusher
		}{p, w, w}
	case Flush | ReadFrom | Push:
		return struct {
			plain
			flusher
			io.ReaderFrom
			http.Pusher
		}{p, w, w, w}
	case Hijack | ReadFrom | Push:
		return struct {
			plain
			http.Hijacker
			io.ReaderFrom
			http.Pusher
		}{p, w, w, w}
	case Flush | Hijack | ReadFrom | Push:
		return struct {
			plain
			flusher
			http.Hijacker
			io.ReaderFrom
			http.Pusher
		}{p, w, w, w, w}
	case Notify | ReadFrom | Push:
		return struct {
			plain
			notifier
			io.ReaderFrom
			http.Pusher
		}{p, w, w, w}
	case Flush | Notify | ReadFrom | Push:
		return struct {
			plain
			flusher
			notifier
			io.ReaderFrom
			http.Pusher
		}{p, w, w, w, w}
	case Hijack | Notify | ReadFrom | Push:
		return struct {
			plain
			http.Hijacker
			notifier
			io.ReaderFrom
			http.Pusher
		}{p, w, w, w, w}
	case Flush | Hijack | Notify | ReadFrom | Push:
		return struct {
			plain
			flusher
			http.Hijacker
			notifier
			io.ReaderFrom
			http.Pusher
		}{p, w, w, w, w, w}
	case Control:
		return struct {
			plain
			controller
		}{p, w}
	case Flush | Control:
		return struct {
			plain
			flusher
			controller
		}{p, w, w}
	case Hijack | Control:
		return struct {
			plain
			http.Hijacker
			controller
		}{p, w, w}
	case Flush | Hijack | Control:
		return struct {
			plain
			flusher
			http.Hijacker
			controller
		}{p, w, w, w}
	case Notify | Control:
		return struct {
			plain
			notifier
			controller
		}{p, w, w}
	case Flush | Notify | Control:
		return struct {
			plain
			flusher
			notifier
			controller
		}{p, w, w, w}
	case Hijack | Notify | Control:
		return struct {
			plain
			http.Hijacker
			notifier
			controller
		}{p, w, w, w}
	case Flush | Hijack | Notify | Control:
		return struct {
			plain
			flusher
			http.Hijacker
			notifier
			controller
		}{p, w, w, w, w}
	case ReadFrom | Control:
		return struct {
			plain
			io.ReaderFrom
			controller
		}{p, w, w}
	case Flush | ReadFrom | Control:
		return struct {
			plain
			flusher
			io.ReaderFrom
			controller
		}{p, w, w, w}
	case Hijack | ReadFrom | Control:
		return struct {
			plain
			http.Hijacker
			io.ReaderFrom
			controller
		}{p, w, w, w}
	case Flush | Hijack | ReadFrom | Control:
		return struct {
			plain
			flusher
			http.Hijacker
			io.ReaderFrom
			controller
		}{p, w, w, w, w}
	case Notify | ReadFrom | Control:
		return struct {
			plain
			notifier
			io.ReaderFrom
			controller
		}{p, w, w, w}
	case Flush | Notify | ReadFrom | Control:
		return struct {
			plain
			flusher
			notifier
			io.ReaderFrom
			controller
		}{p, w, w, w, w}
	case Hijack | Notify | ReadFrom | Control:
		return struct {
			plain
			http.Hijacker
			notifier
			io.ReaderFrom
			controller
		}{p, w, w, w, w}
	case Flush | Hijack | Notify | ReadFrom | Control:
		return struct {
			plain
			flusher
			http.Hijacker
			notifier
			io.ReaderFrom
			controller
		}{p, w, w, w, w, w}
	case Push | Control:
		return struct {
			plain
			http.Pusher
			controller
		}{p, w, w}
	case Flush | Push | Control:
		return struct {
			plain
			flusher
			http.Pusher
			controller
		}{p, w, w, w}
	case Hijack | Push | Control:
		return struct {
			plain
			http.Hijacker
			http.Pusher
			controller
		}{p, w, w, w}
	case Flush | Hijack | Push | Control:
		return struct {
			plain
			flusher
			http.Hijacker
			http.Pusher
			controller
		}{p, w, w, w, w}
	case Notify | Push | Control:
		return struct {
			plain
			notifier
			http.Pusher
			controller
		}{p, w, w, w}
	case Flush | Notify | Push | Control:
		return struct {
			plain
			flusher
			notifier
			http.Pusher
			controller
		}{p, w, w, w, w}
	case Hijack | Notify | Push | Control:
		return struct {
			plain
			http.Hijacker
			notifier
			http.Pusher
			controller
		}{p, w, w, w, w}
	case Flush | Hijack | Notify | Push | Control:
		return struct {
			plain
			flusher
			http.Hijacker
			notifier
			http.Pusher
			controller
		}{p, w, w, w, w, w}
	case ReadFrom | Push | Control:
		return struct {
			plain
			io.ReaderFrom
			http.Pusher
			controller
		}{p, w, w, w}
	case Flush | ReadFrom | Push | Control:
		return struct {
			plain
			flusher
			io.ReaderFrom
			http.Pusher
			controller
		}{p, w, w, w, w}
	case Hijack | ReadFrom | Push | Control:
		return struct {
			plain
			http.Hijacker
			io.ReaderFrom
			http.Pusher
			controller
		}{p, w, w, w, w}
	case Flush | Hijack | ReadFrom | Push | Control:
		return struct {
			plain
			flusher
			http.Hijacker
			io.ReaderFrom
			http.Pusher
			controller
		}{p, w, w, w, w, w}
	case Notify | ReadFrom | Push | Control:
		return struct {
			plain
			notifier
			io.ReaderFrom
			http.Pusher
			controller
		}{p, w, w, w, w}
	case Flush | Notify | ReadFrom | Push | Control:
		return struct {
			plain
			flusher
			notifier
			io.ReaderFrom
			http.Pusher
			controller
		}{p, w, w, w, w, w}
	case Hijack | Notify | ReadFrom | Push | Control:
		return struct {
			plain
			http.Hijacker
			notifier
			io.ReaderFrom
			http.Pusher
			controller
		}{p, w, w, w, w, w}
	case Flush | Hijack | Notify | ReadFrom | Push | Control:
		return struct {
			plain
			flusher
			http.Hijacker
			notifier
			io.ReaderFrom
			http.Pusher
			controller
		}{p, w, w, w, w, w, w}
	}
	return p
}
