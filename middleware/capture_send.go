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
	_, err := c.emit(nil)
	return err
}

// Abandon is for a handler that has panicked: nothing that was held back is sent, and the header becomes what
// it was before the handler, so that the answer of a recovery around the guard carries nothing of it. What was
// passed through cannot be taken back.
func (c *Capture) Abandon() {
	if !c.passing {
		replace(c.real.Header(), c.before)
	}
}

// pass sends what was held back and next, and lets the handler write to the real writer from now on. It returns
// how much of next was written. The bytes are needed to guess the Content-Type as net/http will.
func (c *Capture) pass(next []byte) (int, error) {
	begin := append(c.body[:len(c.body):len(c.body)], next[:min(len(next), sniffed)]...)
	c.contentType = c.guess(begin)
	c.passing, c.cut = true, true
	n, err := c.emit(next)
	c.body = nil
	return n, err
}

// emit writes status, header, the body so far, and next. The real writer gets to see the header as it was when
// the handler told the status; what the handler has changed since is put back behind the body, for that is where
// trailers are taken from. Only that: a middleware between here and the server may change the header when it sees
// the status.
func (c *Capture) emit(next []byte) (n int, err error) {
	header := c.real.Header()
	last := header.Clone()
	replace(header, c.frozen)
	c.real.WriteHeader(c.status)
	if len(c.body)+len(next) == 0 {
		c.headerNow()
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
func (c *Capture) headerNow() {
	if w, waits := c.real.(interface{ WriteHeaderNow() }); waits {
		w.WriteHeaderNow()
	}
}

var _ http.ResponseWriter = (*Capture)(nil)
