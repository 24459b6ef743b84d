package ginlock

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"
)

// watched tells what has become of an answer since it began to watch. gin's own writer tells that itself. Other writers may
// not: one that buffers has written nothing and has the old status, whatever the chain has answered.
type watched struct {
	real gin.ResponseWriter
	by   *watchedWriter // nil if real is gin's own
}

// watch puts a watching writer in the place of the writer of c, if that is not gin's own.
func watch(c *gin.Context) watched {
	w := watched{real: c.Writer}
	if !isGinsOwn(c.Writer) {
		w.by = &watchedWriter{ResponseWriter: c.Writer, status: statusOf(c.Writer)}
		c.Writer = exposed(w.by, w.real)
	}
	return w
}

// begun reports whether the answer has begun.
func (w watched) begun() bool { return w.by != nil && w.by.begun || w.real.Written() }

// status returns the status of the answer, or the one that it will have.
func (w watched) status() int {
	if w.by != nil {
		return w.by.status
	}
	return statusOf(w.real)
}

// watchedWriter passes everything on, and remembers status and begin of the answer.
type watchedWriter struct {
	gin.ResponseWriter
	status int
	begun  bool
}

// Unwrap is for [http.ResponseController].
func (w *watchedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *watchedWriter) WriteHeader(status int) {
	if status > 0 && !w.begun {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *watchedWriter) WriteHeaderNow() {
	w.begun = true
	w.ResponseWriter.WriteHeaderNow()
}

func (w *watchedWriter) Write(p []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(p)
}

func (w *watchedWriter) WriteString(s string) (int, error) {
	w.begun = true
	return w.ResponseWriter.WriteString(s)
}

func (w *watchedWriter) Flush() {
	w.begun = true
	w.ResponseWriter.Flush()
}

func (w *watchedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.begun = true
	return w.ResponseWriter.Hijack()
}

func (w *watchedWriter) ReadFrom(src io.Reader) (int64, error) {
	w.begun = true
	return io.Copy(w.ResponseWriter, src)
}
