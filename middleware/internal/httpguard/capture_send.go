package httpguard

import "net/http"

// Send writes what was held back to the real writer. Call it once the record is written. It does nothing if the answer
// was already passed through. It leaves an answer without any write to the server, which sends an empty 200: see
// [Once.Do] for a handler that did not answer. The error is that of the connection.
func (c *Capture) Send() error {
	c.released = true
	if c.passing || c.status == 0 {
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
func (c *Capture) headerNow() {
	if w, waits := c.real.(interface{ WriteHeaderNow() }); waits {
		w.WriteHeaderNow()
	}
}

var _ http.ResponseWriter = (*Capture)(nil)
