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
		written uint16
		want    error
	}{
		{alive, timeout, 1, timeout},
		{context.Background(), timeout, 1, timeout},
		{over, timeout, 1, ErrNotAnswered},
		{over, timeout, 0, ErrNotSent},
		{over, other, 1, other},
		{over, nil, 1, nil},
	} {
		c := &Command{Err: test.err, keys: keyCount{written: test.written}}
		if got := c.timeoutError(test.ctx); got != test.want {
			t.Errorf("%v, written %d times: %v, want %v", test.err, test.written, got, test.want)
		}
	}
}

// echoScript returns its first argument.
var echoScript = NewScript("return ARGV[1]")
