package script

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// TestLeftPrefersOutages: the reason why ends are not answered is that Redis is unreachable, if one of them says so.
// The order of the keys does not matter.
func TestLeftPrefersOutages(t *testing.T) {
	t.Parallel()
	away, refused, other := transport.ErrNotAnswered, errors.ErrUnsupported, new(overtaken)
	refused = transport.WithOutcome(refused, transport.Rejected)
	for want, errs := range map[error][]error{
		away:    {other, refused, away, other, refused},
		refused: {other, refused, nil, other},
		other:   {nil, other, nil, nil},
		nil:     {nil, nil},
	} {
		for range 20 { // a map has another order each time
			var u Unconfirmed
			for i, err := range errs {
				e := addEnd(&u, fmt.Sprint(i/2), int64(i), func(context.Context) (int64, error) { return 0, err })
				if err != nil {
					_, _ = e.Send(context.Background())
				}
			}
			if ends, err := u.Left(); ends != len(errs) || !errors.Is(err, want) {
				t.Errorf("%d ends left, %v; want %d, %v", ends, err, len(errs), want)
			}
		}
	}
}

// TestEndsThatAreCutShort: such an end tells of an outage, but not better than an end that was not cut short.
func TestEndsThatAreCutShort(t *testing.T) {
	t.Parallel()
	outage := transport.WithOutcome(errors.New("refused"), transport.NotExecuted)
	for _, c := range []struct{ first, want error }{
		{outage, outage},
		{new(overtaken), transport.ErrNotSent},
		{nil, transport.ErrNotSent},
	} {
		var u Unconfirmed
		var err error
		e := addEnd(&u, "key", 1, func(context.Context) (int64, error) { return 0, err })
		if err = c.first; err != nil {
			_, _ = e.Send(context.Background())
		}
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		err = transport.ErrNotSent
		_, _ = e.Send(ended)
		if _, err := u.Left(); !errors.Is(err, c.want) {
			t.Errorf("after %v: %v, want %v", c.first, err, c.want)
		}
	}
}

func addEnd(u *Unconfirmed, key string, token int64, send func(context.Context) (int64, error)) *End {
	e := new(End)
	u.Add(e, &Hold{Keys: Keys{Lock: key}}, token, send)
	return e
}
