package middleware

import (
	"context"
	"errors"
	"io"
	"math"
)

// Buffer reads up to limit bytes of body and returns a body that begins with them and goes on with what was
// not read. A request should have its body before it has its lock: whoever sends slowly would hold the lock
// meanwhile, and net/http notices that an HTTP/1.1 client has left only after its body was read.
//
// A *Body is returned itself, and read on if limit is above the one before, unless it is whole or somebody has
// read more of it than was buffered. So a key function may buffer a body and the guard may do so again.
//
// It fails with [ErrClientGone] if body ends before its end or ctx does. Other errors of body are those of the
// returned one, for the handler to deal with.
func Buffer(ctx context.Context, body io.ReadCloser, limit int64) (*Body, error) {
	b, ok := body.(*Body)
	if !ok {
		b = &Body{source: body}
	}
	b.readAhead(limit)
	if errors.Is(b.err, io.ErrUnexpectedEOF) || gone(ctx) {
		return nil, errors.Join(ErrClientGone, b.err)
	}
	return b, nil
}

// Body is the body of a request whose beginning can be looked at without reading it. Make it with [Buffer]. It
// is not safe for concurrent use.
type Body struct {
	source io.ReadCloser
	begin  []byte
	whole  bool  // begin is all there is
	err    error // of source, after begin
	read   int   // how much of begin was read
	passed bool  // more than begin was read
}

// Bytes returns the beginning of the body, as far as it was buffered, and whether that is the whole body. It is
// the same however much was read. It has at most one byte more than the highest limit of [Buffer], which may be
// that of another caller, and is not to be changed.
func (b *Body) Bytes() (begin []byte, whole bool) {
	return b.begin[:len(b.begin):len(b.begin)], b.whole
}

// Read reads the body from its beginning to its end or its error.
func (b *Body) Read(p []byte) (int, error) {
	switch {
	case b.read < len(b.begin):
		n := copy(p, b.begin[b.read:])
		b.read += n
		return n, nil
	case b.whole:
		return 0, io.EOF
	case b.err != nil:
		return 0, b.err
	}
	n, err := b.source.Read(p)
	b.passed = b.passed || n > 0
	return n, err
}

// Close closes the body that was buffered. What was read of it stays.
func (b *Body) Close() error { return b.source.Close() }

func (b *Body) readAhead(limit int64) {
	if b.whole || b.err != nil || b.passed {
		return
	}
	// One byte more than the limit: the end of a body is known only by the attempt to read on.
	limit = min(limit, math.MaxInt64-1)
	more, err := io.ReadAll(io.LimitReader(b.source, limit+1-int64(len(b.begin))))
	b.begin, b.err = append(b.begin, more...), err
	b.whole = err == nil && int64(len(b.begin)) <= limit
}
