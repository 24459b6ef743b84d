package httpguard

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/holdfast-go/holdfast/middleware/internal/writer"
)

// Write holds p back or passes it through. The errors are net/http's: [http.ErrBodyNotAllowed] for status 204
// and 304, [http.ErrContentLength] beyond the handler's own Content-Length, [http.ErrHijacked], and those of
// the connection once the answer is passed through.
func (c *Capture) Write(p []byte) (int, error) {
	if c.hijacked {
		return 0, http.ErrHijacked
	}
	if c.status == 0 {
		c.begin(c.released)
	}
	switch {
	case c.passing:
		n, err := c.real.Write(p)
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

// begin takes status 200, which the handler has not told. If the answer passes through, what the handler does next sends the
// header: a middleware around the capture, for instance one that compresses, may change it then.
func (c *Capture) begin(passes bool) {
	c.implicit = true
	c.WriteHeader(http.StatusOK)
	c.passing = passes
}

// WriteString is Write.
func (c *Capture) WriteString(s string) (int, error) {
	if c.passing && c.cut && !c.hijacked {
		return io.WriteString(c.real, s)
	}
	return c.Write([]byte(s))
}

// ReadFrom writes the content of src. Once no more of it is recorded, the real writer may use sendfile.
func (c *Capture) ReadFrom(src io.Reader) (int64, error) {
	if c.hijacked {
		return 0, http.ErrHijacked
	}
	var held int64
	if !c.passing || !c.cut {
		// One byte more than there is room for: with that, Write passes the answer through and records no more. Why no
		// CopyN: its io.EOF for a short source would hide an error of the source that wraps io.EOF, as url.Error does.
		begin := int64(c.room()) + 1
		n, err := io.Copy(writerFunc(c.Write), io.LimitReader(src, begin))
		if n < begin || err != nil {
			return n, err
		}
		held = n
	}
	passed, err := io.Copy(c.real, src)
	return held + passed, err
}

// writerFunc keeps io.Copy from calling ReadFrom again.
type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// room is how many bytes can still be held back. It is never less than net/http guesses the Content-Type from:
// whatever the limit, the guess is made from the same bytes.
func (c *Capture) room() int { return max(c.limit, sniffed) - len(c.body) }

// Flush sends what was held back and passes the rest of the answer through. If the real writer cannot flush, it fails
// with [http.ErrNotSupported] and changes nothing.
func (c *Capture) Flush() error {
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
	err := http.NewResponseController(c.real).Flush()
	if err != nil && (c.declared < 0 || !c.whole()) {
		c.keep(nil, err)
	}
	return err
}

// Hijack sends what was held back and lets the handler take over the connection. If the real writer cannot do that, it
// fails with [http.ErrNotSupported] and changes nothing.
func (c *Capture) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if !c.canHijack() {
		return nil, nil, http.ErrNotSupported
	}
	if c.status != 0 && !c.passing {
		if _, err := c.pass(nil); err != nil {
			return nil, nil, err
		}
	}
	conn, buffered, err := http.NewResponseController(c.real).Hijack()
	if err == nil {
		c.hijacked, c.passing, c.cut, c.body = true, true, true, nil
	}
	return conn, buffered, err
}

// canFlush reports whether the real writer, or one that it unwraps to, can flush.
func (c *Capture) canFlush() bool {
	return writer.Reaches[http.Flusher](c.real) || writer.Reaches[interface{ FlushError() error }](c.real)
}

// canHijack reports whether the real writer, or one that it unwraps to, lets its connection be taken over.
func (c *Capture) canHijack() bool { return writer.Reaches[http.Hijacker](c.real) }
