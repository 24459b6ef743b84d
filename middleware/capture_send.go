package middleware

import "net/http"

// Send writes what was held back to the real writer. Call it once the record is written; it does nothing if the
// answer was passed through already, and leaves an answer without any write to the server, which makes it an
// empty 200. The error is the connection's.
func (c *Capture) Send() error {
	if c.passing || c.status == 0 {
		return nil
	}
	c.passing = true
	return c.emit()
}

// Abandon is for a handler that has panicked: nothing that was held back is sent, and the header becomes what
// it was before the handler, so that the answer of a recovery around the guard carries nothing of it. What was
// passed through cannot be taken back.
func (c *Capture) Abandon() {
	if !c.passing {
		replace(c.real.Header(), c.before)
	}
}

// pass sends what was held back, and lets the handler write to the real writer from now on. The bytes that
// come next are needed to guess the Content-Type as net/http will.
func (c *Capture) pass(next []byte) error {
	begin := append(c.body[:len(c.body):len(c.body)], next[:min(len(next), sniffed)]...)
	c.contentType = c.guess(begin)
	c.passing, c.cut = true, true
	err := c.emit()
	c.body = nil
	return err
}

// emit writes status, header and body. The real writer gets to see the header as it was when the handler told
// the status; what the handler has changed since is put back behind the body, for that is where trailers are
// taken from. Only that: a middleware between here and the server may change the header when it sees the status.
func (c *Capture) emit() error {
	header := c.real.Header()
	last := header.Clone()
	replace(header, c.frozen)
	c.real.WriteHeader(c.status)
	var err error
	if len(c.body) > 0 {
		_, err = c.real.Write(c.body)
	}
	for name, values := range changed(c.frozen, last) {
		header[name] = values
	}
	for name := range c.frozen {
		if _, kept := last[name]; !kept {
			delete(header, name)
		}
	}
	return err
}

var _ http.ResponseWriter = (*Capture)(nil)
