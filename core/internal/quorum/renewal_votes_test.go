package quorum

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
)

// TestTally: a renewal counts from the first of the requests that make its majority, because from then on the first
// server may let the hold expire.
func TestTally(t *testing.T) {
	t.Parallel()
	type said struct {
		at   keepalive.Instant
		held bool
		err  error
	}
	away := errors.New("away")
	for name, c := range map[string]struct {
		said    []said
		decided bool // by the last
		held    bool
		sentAt  keepalive.Instant
	}{
		"majority":         {[]said{{20, true, nil}, {10, true, nil}, {30, true, nil}}, true, true, 10},
		"not yet":          {[]said{{20, true, nil}, {10, true, nil}, {5, true, away}}, false, false, 10},
		"without the lost": {[]said{{1, false, nil}, {20, true, nil}, {1, false, nil}, {10, true, nil}, {30, true, nil}}, true, true, 10},
		"lost":             {[]said{{20, true, nil}, {1, false, nil}, {2, false, nil}, {3, false, nil}}, true, false, 20},
		"undecided":        {[]said{{20, true, nil}, {9, true, nil}, {2, false, nil}, {3, false, nil}, {5, true, away}}, true, false, 9},
	} {
		votes := &renewalVotes{quorum: &Strategy{nodes: make([]*node, 5), majority: 3}, sentAt: keepalive.Never}
		var last renewalOutcome
		for _, s := range c.said {
			if last = votes.add(nil, s.at, s.held && s.err == nil, s.err); last.held != (votes.held >= 3) {
				t.Errorf("%s: %+v", name, last)
			}
		}
		if last.decided != c.decided || last.held != c.held || votes.sentAt != c.sentAt {
			t.Errorf("%s: %+v, counted from %d", name, last, votes.sentAt)
		}
	}
}
