package fiberlock

import (
	"io"
	"net"
	"reflect"
	"runtime"
	"unsafe"

	"github.com/valyala/fasthttp"
)

// fasthttp closes the stream of a response when another one takes its place, and does not hand out the handler of a connection that
// was taken over. So wrappers that report their end are put around them in fasthttp's own fields. If a version of fasthttp lacks one,
// the guard ends with the chain.

// field returns a pointer to a field of a struct, nil if there is none of that type.
func field[T any](of any, name string) *T {
	f := reflect.ValueOf(of).Elem().FieldByName(name)
	if !f.IsValid() || f.Type() != reflect.TypeFor[T]() {
		return nil
	}
	return (*T)(unsafe.Pointer(f.UnsafeAddr()))
}

// untilStreamEnds has the guard wait until the stream of the response is closed. It returns false if there is none.
func (v *visit) untilStreamEnds(r *fasthttp.Response) bool {
	body := field[io.Reader](r, "bodyStream")
	if body == nil || *body == nil {
		return false
	}
	*body = &stream{Reader: *body, done: v.done}
	return true
}

// stream is the body of a response whose end is reported.
type stream struct {
	io.Reader
	done   func()
	closed error
}

// Read also reports the end of a stream that nobody closes.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil {
		s.done()
	}
	return n, err
}

func (s *stream) Close() error {
	defer s.done()
	if c, ok := s.Reader.(io.Closer); ok {
		s.closed = c.Close()
	}
	return s.closed
}

// CloseWithError is called after Close.
func (s *stream) CloseWithError(err error) error {
	if c, ok := s.Reader.(fasthttp.ReadCloserWithError); ok {
		return c.CloseWithError(err)
	}
	return s.closed
}

// untilConnectionEnds has the guard wait until the handler of a connection that was taken over has returned. It returns
// false if there is none.
func (v *visit) untilConnectionEnds() bool {
	ctx := v.c.RequestCtx()
	handler := field[fasthttp.HijackHandler](ctx, "hijackHandler")
	if handler == nil || *handler == nil {
		return false
	}
	handle, token := *handler, &struct{ done func() }{v.done}
	// fasthttp drops a handler whose client has left before the response was written.
	runtime.AddCleanup(token, func(done func()) { go done() }, v.done)
	ctx.Hijack(func(conn net.Conn) {
		defer func() {
			token.done()
			runtime.KeepAlive(token) // until here the connection is in use
		}()
		handle(conn)
	})
	return true
}
