package httplock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"testing/iotest"
)

// source is a body that counts what is read of it.
type source struct {
	io.Reader
	taken  int
	closed bool
}

func newSource(size int) *source { return &source{Reader: strings.NewReader(text(size))} }

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.taken += n
	return n, err
}

func (s *source) Close() error {
	s.closed = true
	return nil
}

// text has no byte where another one would be at a wrong offset.
func text(size int) string {
	return strings.Repeat("0123456789abcdefghijklmnopqrstuvwxyz", size/36+1)[:size]
}

func buffer(t *testing.T, body io.ReadCloser, limit int64) *bodyBuffer {
	t.Helper()
	b, err := bufferBody(t.Context(), body, limit)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func wantBytes(t *testing.T, b *bodyBuffer, want string, whole bool) {
	t.Helper()
	if got, all := b.Bytes(); string(got) != want || all != whole {
		t.Errorf("buffered %q, whole %v, want %q, %v", got, all, want, whole)
	}
}

func wantRest(t *testing.T, b *bodyBuffer, want string) {
	t.Helper()
	if got, err := io.ReadAll(b); err != nil || string(got) != want {
		t.Errorf("read %q, %v, want %q", got, err, want)
	}
}

func TestBufferedBodyIsThereTwice(t *testing.T) {
	t.Parallel()
	for _, limit := range []int64{0, 1, 10, math.MaxInt64} {
		for _, size := range []int{0, 1, 2, 9, 10, 11, 12, 100} {
			t.Run(fmt.Sprintf("%d of %d bytes", limit, size), func(t *testing.T) {
				t.Parallel()
				b := buffer(t, newSource(size), limit)
				whole := int64(size) <= limit
				seen := text(size)
				if !whole {
					seen = text(int(limit) + 1)
				}
				wantBytes(t, b, seen, whole)
				if _, err := io.CopyN(io.Discard, b, int64(size/2)); err != nil {
					t.Error(err)
				}
				wantBytes(t, b, seen, whole)
				wantRest(t, b, text(size)[size/2:])
				wantBytes(t, b, seen, whole)
			})
		}
	}
}

func TestBufferAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		size         int
		first        int64
		read         int
		second       int64
		taken, begin int
		whole        bool
	}{
		"same limit":                 {100, 10, 0, 10, 11, 11, false},
		"smaller limit":              {100, 10, 0, 5, 11, 11, false},
		"larger limit":               {100, 10, 0, 20, 21, 21, false},
		"limit that reaches the end": {100, 10, 0, 100, 100, 100, true},
		"limit beyond the end":       {100, 10, 0, 1000, 100, 100, true},
		"whole":                      {10, 10, 0, 1000, 10, 10, true},
		"one byte too long":          {11, 10, 0, 11, 11, 11, true},
		"partly read":                {100, 10, 5, 20, 21, 21, false},
		"just read":                  {100, 10, 11, 20, 21, 21, false},
		"more read than buffered":    {100, 10, 12, 20, 12, 11, false},
		"nothing first":              {100, -1, 0, 20, 21, 21, false},
		"nothing at all":             {100, -1, 0, -1, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := newSource(test.size)
			first := buffer(t, from, test.first)
			if _, err := io.CopyN(io.Discard, first, int64(test.read)); err != nil {
				t.Fatal(err)
			}
			second := buffer(t, first, test.second)
			if second != first {
				t.Error("another body came back")
			}
			if from.taken != test.taken {
				t.Errorf("%d bytes were read, want %d", from.taken, test.taken)
			}
			wantBytes(t, second, text(test.begin), test.whole)
			wantRest(t, second, text(test.size)[test.read:])
		})
	}
}

// What was handed out stays as it is, also if its reader appends to it and the body is read on.
func TestBytesAreNotOverwritten(t *testing.T) {
	t.Parallel()
	b := buffer(t, newSource(100), 10)
	begin, _ := b.Bytes()
	buffer(t, b, 12)
	if longer := append(begin, "xx"...); !bytes.HasPrefix(longer, []byte(text(11))) {
		t.Errorf("the beginning became %q", longer)
	}
	wantBytes(t, b, text(13), false)
	wantRest(t, b, text(100))
}

func TestErrorOfTheBodyIsTheReaders(t *testing.T) {
	t.Parallel()
	// It times out once, and has no more after that: the error is not to be taken for the end.
	broken := iotest.ErrTimeout
	from := &source{Reader: iotest.TimeoutReader(strings.NewReader(text(5)))}
	b := buffer(t, buffer(t, from, 10), 20)
	wantBytes(t, b, text(5), false)
	for _, want := range []string{text(5), ""} {
		if got, err := io.ReadAll(b); !errors.Is(err, broken) || string(got) != want {
			t.Errorf("read %q, %v, want %q and the error", got, err, want)
		}
	}
}

// Only a client whose context has ended is gone: the others read what is wrong with their body.
func TestBodyCutShort(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ err, want error }{
		"cut short": {io.ErrUnexpectedEOF, errBodyUnreadable},
		"timed out": {os.ErrDeadlineExceeded, errBodyTimeout},
	} {
		cut := io.MultiReader(strings.NewReader(text(20)), iotest.ErrReader(test.err))
		b := buffer(t, &source{Reader: cut}, 10)
		for range 2 {
			if _, err := bufferBody(t.Context(), b, 30); !errors.Is(err, test.want) || errors.Is(err, errClientGone) {
				t.Errorf("%s: error %v, want %v", name, err, test.want)
			}
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := bufferBody(ctx, newSource(1), 10); !errors.Is(err, errClientGone) {
		t.Errorf("error %v, want that the client is gone", err)
	}
}

// A limit that is never reached costs nothing.
func TestBufferGrowsWithTheBody(t *testing.T) {
	t.Parallel()
	wantBytes(t, buffer(t, newSource(10), math.MaxInt64), text(10), true)
}

func TestCloseClosesTheBody(t *testing.T) {
	t.Parallel()
	from := newSource(100)
	if err := buffer(t, from, 10).Close(); err != nil || !from.closed {
		t.Errorf("closed %v, error %v", from.closed, err)
	}
}
