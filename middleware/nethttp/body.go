package httplock

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"sync"

	"github.com/holdfast-go/holdfast/middleware/internal/request"
)

// errBodyUnreadable says that the body of a request ended before its end: 400. The client may still be connected.
var errBodyUnreadable = errors.New("holdfast: body cut short")

// errBodyTimeout says that the body of a request did not arrive within the server's time: 408.
var errBodyTimeout = errors.New("holdfast: body not received in time")

// errBodyMemory says that the bodies of other requests take all the memory for bodies: 503.
var errBodyMemory = errors.New("holdfast: no memory left for bodies")

// bufferBody reads up to limit bytes of body and returns a body that begins with them and continues with the rest. A
// request should have its body before it has its lock. Otherwise a slow client would hold the lock while it sends, and
// net/http notices that an HTTP/1.1 client has left only after its body was read.
//
// It returns a *bodyBuffer itself, and reads more of it if limit is above the previous one, unless the body is whole, or more of
// it was read than buffered. So a key function may buffer a body, and the guard may do so again.
//
// The error is [errBodyUnreadable], [errBodyTimeout], [errBodyMemory], or [errClientGone] if ctx is cancelled. Other errors of the body
// are for the handler, which reads them from the returned one.
func bufferBody(ctx context.Context, body io.ReadCloser, limit int64) (*bodyBuffer, error) {
	b, ok := body.(*bodyBuffer)
	if !ok {
		b = &bodyBuffer{source: body}
	}
	err := b.readAhead(limit)
	switch {
	// net/http ends the context after these two as well, as it cannot read on, but it can still write.
	case errors.Is(b.err, io.ErrUnexpectedEOF):
		return nil, errors.Join(errBodyUnreadable, b.err)
	case timedOut(b.err):
		return nil, errors.Join(errBodyTimeout, b.err)
	case gone(ctx):
		return nil, errors.Join(errClientGone, b.err)
	case err != nil:
		return nil, err
	}
	return b, nil
}

func timedOut(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// bodyBuffer is the body of a request whose beginning can be looked at without reading it. Make it with [bufferBody]. It is not
// safe for concurrent use.
type bodyBuffer struct {
	source io.ReadCloser
	begin  []byte
	whole  bool   // begin is all there is
	err    error  // of source, after begin
	read   int    // how much of begin was read
	passed bool   // more than begin was read
	parsed []byte // what was read in front, of which begin has nothing: see [bodyBuffer.recall]
	memory *shares
	owner  string
	taken  int64 // of memory
}

// Bytes returns the buffered beginning of the body, and true if that is the whole body. The result is the same however
// much was read. It has at most one byte more than the highest limit of [bufferBody], which may be another caller's.
// The caller must not change it.
func (b *bodyBuffer) Bytes() (begin []byte, whole bool) {
	return b.begin[:len(b.begin):len(b.begin)], b.whole
}

// tooLarge returns the error of a body of r of which not more was read because of a limit in front of the guard, such as the one of
// [http.MaxBytesReader] or of a middleware of the framework: an [errBodyTooLarge]. It returns nil for any other body.
func (b *bodyBuffer) tooLarge(r *http.Request) error {
	var large *http.MaxBytesError
	switch {
	case errors.As(b.err, &large):
		return largerThan(large.Limit)
	case request.TooLarge(r, b.err):
		return KeyError(errBodyTooLarge, "the body has more bytes than are accepted here")
	}
	return nil
}

// largerThan is the [errBodyTooLarge] of a body above a limit, which is in the response.
func largerThan(limit int64) error {
	return KeyError(errBodyTooLarge, "the body has more than %d bytes, which are accepted here at most", limit)
}

// compared returns the part of the body that distinguishes it from others.
func (b *bodyBuffer) compared() []byte {
	if b.parsed != nil {
		return b.parsed
	}
	begin, _ := b.Bytes()
	return begin
}

// Read reads the body from its beginning to its end or its error.
func (b *bodyBuffer) Read(p []byte) (int, error) {
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

// Close closes the body that was buffered. The buffered part stays.
func (b *bodyBuffer) Close() error { return b.source.Close() }

// release gives back the memory of a body whose request has ended.
func (b *bodyBuffer) release() {
	b.memory.give(b.owner, b.taken)
	b.taken = 0
}

// take reserves memory for n bytes more.
func (b *bodyBuffer) take(n int64) error {
	if !b.memory.take(b.owner, n) {
		return errBodyMemory
	}
	b.taken += n
	return nil
}

// own has the body count as an owner's.
func (b *bodyBuffer) own(owner string) error {
	if !b.memory.move(b.owner, owner, b.taken) {
		return errBodyMemory
	}
	b.owner = owner
	return nil
}

// The pieces in which a body is read, in bytes. Each is a quarter of what has arrived, within these bounds. So a client that
// announces much and sends little takes little.
const (
	smallestPiece = 512
	largestPiece  = 64 << 10
)

// readAhead fails only if there is no memory left: other errors come from the body.
func (b *bodyBuffer) readAhead(limit int64) error {
	// One byte more than the limit: the end of a body is known only by the attempt to read on.
	most := min(limit, math.MaxInt64-1) + 1
	var pieces [][]byte
	defer func() { b.join(pieces) }()
	have := int64(len(b.begin))
	for !b.whole && b.err == nil && !b.passed && have < most {
		last := len(pieces) - 1
		if last < 0 || len(pieces[last]) == cap(pieces[last]) {
			size := min(max(smallestPiece, min(have/4, largestPiece)), most-have)
			if err := b.take(size); err != nil {
				return err
			}
			pieces = append(pieces, make([]byte, 0, size))
			last++
		}
		piece := pieces[last]
		n, err := b.source.Read(piece[len(piece):cap(piece)])
		pieces[last] = piece[:len(piece)+n]
		have += int64(n)
		switch {
		case err == io.EOF:
			b.whole = true
		case err != nil:
			b.err = err
		}
	}
	return nil
}

// join appends pieces to the buffer. What [bodyBuffer.Bytes] has handed out stays as it is. The copy takes the memory of the
// pieces over, which the client cannot delay.
func (b *bodyBuffer) join(pieces [][]byte) {
	switch {
	case len(pieces) == 0:
		return
	case len(pieces) == 1 && len(b.begin) == 0:
		b.begin = pieces[0]
		return
	}
	var have, reserved int64
	for _, piece := range pieces {
		have, reserved = have+int64(len(piece)), reserved+int64(cap(piece))
	}
	b.begin = slices.Concat(append([][]byte{b.begin}, pieces...)...)
	b.memory.give(b.owner, reserved-have)
	b.taken -= reserved - have
}

// bufferRequest reads the body of r ahead with [bufferBody]; r is a copy,
// whose Body it replaces. key is the request's: the memory of the body counts as its owner's. A larger body is
// read up to the limit, or refused with [errBodyTooLarge]. If its Content-Length says so, it is refused unread.
//
// If bodies are compared, and this one was read before, the form that net/http has parsed of it takes its place. Without
// one the error is [errBodyRead], if the body is known not to have been empty.
//
// A client that waits for 100 Continue is asked for its body too, because otherwise it would hold the key of the request for as
// long as it likes.
func (g *guard) bufferRequest(r *http.Request, key Key) error {
	limit, strict := g.BodyLimit, g.StrictBody
	if admitted, ok := r.Body.(*bodyBuffer); ok && admitted.memory == g.bodies {
		if err := admitted.own(ownerOf(key, admitted.owner)); err != nil {
			return err
		}
	}
	switch {
	case limit == 0:
		return nil
	case r.ContentLength > limit && strict:
		return largerThan(limit)
	case r.Body == nil, r.Body == http.NoBody:
		return bufferNone(r, limit, strict)
	}
	body, err := bufferBody(r.Context(), r.Body, limit)
	if err != nil {
		return err
	}
	if strict {
		if err := body.checkWhole(r, limit); err != nil {
			return err
		}
	}
	r.Body = body
	return nil
}

// bufferNone is for a request without a body, which a program in front may have taken away.
func bufferNone(r *http.Request, limit int64, strict bool) error {
	none := &bodyBuffer{source: http.NoBody, whole: true}
	if !strict {
		return nil
	}
	if err := none.recall(r, limit); err != nil {
		return err
	}
	if none.parsed != nil {
		r.Body = none
	}
	return nil
}

// checkWhole refuses a body of which not all can be compared: half of one is not to be compared with another one.
func (b *bodyBuffer) checkWhole(r *http.Request, limit int64) error {
	switch {
	case b.tooLarge(r) != nil:
		return b.tooLarge(r)
	case int64(len(b.begin)) > limit:
		return largerThan(limit)
	case b.usedUp(), b.begun(r):
		return b.recall(r, limit)
	case b.err != nil:
		return errors.Join(errBodyUnreadable, b.err)
	}
	return nil
}

// admit has the bodies that are buffered for r count against the memory for bodies, until release is called, which the
// caller must do when the request has ended. r is a copy, whose Body it replaces.
func (g *guard) admit(r *http.Request) (release func()) {
	if r.Body == nil || r.Body == http.NoBody {
		return func() {}
	}
	if _, counted := r.Body.(*bodyBuffer); counted { // by a guard around this one
		return func() {}
	}
	body := &bodyBuffer{source: r.Body, memory: g.bodies, owner: addressOf(r)}
	r.Body = body
	return body.release
}

// shares bounds what all requests at a guard, or at several, take together of something, and shares it among their owners: see [ownerOf].
// An owner gets no more than what is left for others. So one owner gets half of all at most, two get a third each, and
// there is always something left for another one.
type shares struct {
	mu    sync.Mutex
	most  int64
	taken int64
	by    map[string]int64
}

func newShares(most int64) *shares { return &shares{most: most, by: make(map[string]int64)} }

// take returns false if the owner would have more than is left.
func (s *shares) take(owner string, n int64) bool {
	if s == nil || n == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > s.most-s.taken-s.by[owner] {
		return false
	}
	s.taken += n
	s.by[owner] += n
	return true
}

func (s *shares) give(owner string, n int64) {
	if s == nil || n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken -= n
	if s.by[owner] -= n; s.by[owner] == 0 {
		delete(s.by, owner)
	}
}

// move makes another owner of what was taken. It returns false, and changes nothing, if that one would have more than is
// left.
func (s *shares) move(from, to string, n int64) bool {
	if s == nil || n == 0 || from == to {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > s.most-(s.taken-n)-s.by[to] {
		return false
	}
	s.by[to] += n
	if s.by[from] -= n; s.by[from] == 0 {
		delete(s.by, from)
	}
	return true
}

// The names of the parts of a key that authentication or the network has chosen, and not the client.
const (
	principalPart = "context"
	addressPart   = "ip"
)

// ownerOf returns who answers for what a request takes of the guard, of whose key the client may choose a part. It is the
// user or the address in the key, or else the scope in front of an Idempotency-Key. If the key has neither, it is the
// address of the connection: see [addressOf]. Without an address it is the whole key.
func ownerOf(key Key, address string) string {
	var known Key
	for _, p := range key.parts {
		if p.name == principalPart || p.name == addressPart {
			known.parts = append(known.parts, p)
		}
	}
	last := len(key.parts) - 1
	switch {
	case !known.IsZero():
		return known.Hash()
	case last > 0 && key.parts[last].name == idempotencyKey:
		return Key{parts: key.parts[:last]}.Hash()
	case address != "":
		return address
	}
	return key.Hash()
}

// addressOf returns the network of the client, or of the proxy in front, of a request whose key is not known. It is shorter
// than the hash of a key.
func addressOf(r *http.Request) string {
	addr, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil { // of a socket without addresses, for instance
		return "local"
	}
	return networkOf(addr.Addr()).String()
}
