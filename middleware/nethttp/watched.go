package httplock

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// watchedWriter is the handler's writer behind [Exclusive]. It passes everything on, and knows whether the answer has begun.
//
// One thing of net/http's writer is lost on all that wrap it: [http.MaxBytesReader] no longer announces that the
// connection of a client which sends too much will be closed.
type watchedWriter struct {
	http.ResponseWriter
	wrote bool
}

// exposed returns the writer with the optional methods of the real one, or the real one itself if it has another
// choice of them than those of net/http. Then nothing is known of its answer.
func (w *watchedWriter) exposed() http.ResponseWriter {
	_, flush := w.ResponseWriter.(http.Flusher)
	_, hijack := w.ResponseWriter.(http.Hijacker)
	closing, notify := w.ResponseWriter.(closeNotifier)
	switch {
	case flush && hijack && notify: // HTTP/1.1
		return struct {
			*watchedWriter
			watchedFlusher
			watchedHijacker
			closeNotifier
		}{w, watchedFlusher{w}, watchedHijacker{w}, closing}
	case flush && notify && !hijack: // HTTP/2
		return struct {
			*watchedWriter
			watchedFlusher
			closeNotifier
		}{w, watchedFlusher{w}, closing}
	case flush && hijack:
		return struct {
			*watchedWriter
			watchedFlusher
			watchedHijacker
		}{w, watchedFlusher{w}, watchedHijacker{w}}
	case flush:
		return struct {
			*watchedWriter
			watchedFlusher
		}{w, watchedFlusher{w}}
	case !hijack && !notify:
		return w
	}
	w.wrote = true
	return w.ResponseWriter
}

func (w *watchedWriter) WriteHeader(status int) {
	w.wrote = w.wrote || status >= http.StatusOK || status == http.StatusSwitchingProtocols
	w.ResponseWriter.WriteHeader(status)
}

func (w *watchedWriter) Write(p []byte) (int, error) {
	w.wrote = true
	return w.ResponseWriter.Write(p)
}

func (w *watchedWriter) WriteString(s string) (int, error) {
	w.wrote = true
	return io.WriteString(w.ResponseWriter, s)
}

// ReadFrom writes the content of src, by sendfile where the real writer does so.
func (w *watchedWriter) ReadFrom(src io.Reader) (int64, error) {
	n, err := io.Copy(w.ResponseWriter, src)
	w.wrote = w.wrote || n > 0
	return n, err
}

// Push is always there: [http.Pusher] says by its error that it is not supported.
func (w *watchedWriter) Push(target string, opts *http.PushOptions) error {
	if p, ok := w.ResponseWriter.(http.Pusher); ok {
		return p.Push(target, opts)
	}
	return http.ErrNotSupported
}

// Unwrap is for [http.ResponseController].
func (w *watchedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// closeNotifier is http.CloseNotifier, which gin's Stream still needs.
type closeNotifier interface{ CloseNotify() <-chan bool }

type watchedFlusher struct{ w *watchedWriter }

func (f watchedFlusher) Flush() { _ = f.FlushError() }

func (f watchedFlusher) FlushError() error {
	f.w.wrote = true
	return http.NewResponseController(f.w.ResponseWriter).Flush()
}

type watchedHijacker struct{ w *watchedWriter }

func (h watchedHijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(h.w.ResponseWriter).Hijack()
	h.w.wrote = h.w.wrote || err == nil
	return conn, buffered, err
}
