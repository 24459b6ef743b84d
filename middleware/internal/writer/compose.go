package writer

import "net/http"

// compose returns a writer with the methods of w, of the optional ones those of the set, that unwraps to next.
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
