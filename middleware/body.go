package middleware

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// BodyLimit returns up to how many bytes of body [Buffer] should read.
func (e *Exclusive) BodyLimit() int64 { return e.config.BodyLimit }

// Buffer reads up to limit bytes of body and returns a body that begins with them and goes on with what was
// not read. A request should have its body before it has its lock: whoever sends slowly would hold the lock
// meanwhile, and net/http notices that an HTTP/1.1 client has left only after its body was read.
//
// It fails with [ErrClientGone] if body ends before its end or ctx does. Other errors of body are those of the
// returned one, for the handler to deal with.
func Buffer(ctx context.Context, body io.ReadCloser, limit int64) (io.ReadCloser, error) {
	// One byte more than the limit: the end of a body is known only by the attempt to read on.
	begin, err := io.ReadAll(io.LimitReader(body, limit+1))
	if errors.Is(err, io.ErrUnexpectedEOF) || gone(ctx) {
		return nil, errors.Join(ErrClientGone, err)
	}
	rest := io.Reader(body)
	if err != nil {
		rest = failing{err}
	}
	return buffered{io.MultiReader(bytes.NewReader(begin), rest), body}, nil
}

type buffered struct {
	io.Reader
	io.Closer
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
