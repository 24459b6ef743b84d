package transport

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// TestTimeoutAtTheEndOfTheContext: a timeout of go-redis after the end of the context is reported as the end of the wait, not
// as an error of the server.
func TestTimeoutAtTheEndOfTheContext(t *testing.T) {
	t.Parallel()
	timeout := &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
	alive, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	over, cancelOver := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancelOver()
	other := errors.New("other")
	for _, test := range []struct {
		ctx     context.Context
		err     error
		written bool
		want    error
	}{
		{alive, timeout, true, timeout},
		{context.Background(), timeout, true, timeout},
		{over, timeout, true, ErrNotAnswered},
		{over, timeout, false, ErrNotSent},
		{over, other, true, other},
		{over, nil, true, nil},
	} {
		c := &Command{Err: test.err, keys: keyCount{written: test.written}}
		if got := c.timeoutError(test.ctx); got != test.want {
			t.Errorf("%v, written %v: %v, want %v", test.err, test.written, got, test.want)
		}
	}
}

// echoScript returns its first argument.
var echoScript = NewScript("return ARGV[1]")
