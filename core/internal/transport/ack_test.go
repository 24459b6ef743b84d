package transport

import (
	"errors"
	"io"
	"testing"
)

// TestConfirm: only a successful command needs acknowledgements, and an error of WAIT concerns only such commands.
func TestConfirm(t *testing.T) {
	t.Parallel()
	granted, refused := []any{int64(1), int64(7)}, []any{int64(0), int64(7)}
	for name, test := range map[string]struct {
		reply    any
		replicas int
		err      error
		short    bool
		want     error
	}{
		"enough":              {reply: granted, replicas: 2},
		"too few":             {reply: granted, replicas: 1, short: true},
		"renewed, too few":    {reply: int64(1), replicas: 1, short: true},
		"in part, too few":    {reply: int64(5), replicas: 1, short: true},
		"not renewed":         {reply: int64(0)},
		"refused":             {reply: refused},
		"refused, no answer":  {reply: refused, err: io.EOF},
		"granted, no answer":  {reply: granted, err: io.EOF, want: io.EOF},
		"nothing in the list": {reply: []any{}},
	} {
		c := &Command{Reply: test.reply, Ack: Ack{Replicas: 2}}
		c.checkAck(test.replicas, test.err)
		var short *AckError
		switch errors.As(c.Err, &short) {
		case true:
			if !test.short || *short != (AckError{Acknowledged: test.replicas, Wanted: 2}) {
				t.Errorf("%s: %v", name, c.Err)
			}
		case false:
			if test.short || !errors.Is(c.Err, test.want) {
				t.Errorf("%s: %v", name, c.Err)
			}
		}
	}
}
