package inspector

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

const (
	// leastRetention is the default of core: a resolved record is kept as long, unless its operator says otherwise.
	leastRetention = 24 * time.Hour
	// mostRetention is the longest that core allows.
	mostRetention = 10 * 365 * 24 * time.Hour
)

// resolve completes a record. It never shortens the time for which the record is kept, which protects against a second run.
func resolve(ctx context.Context, h *Handler, s subject, form url.Values) error {
	kept := s.kept()
	if text := form.Get("keep"); text != "" {
		var err error
		if kept, err = time.ParseDuration(text); err != nil {
			return fmt.Errorf("%w: keep for %q: a time such as 24h or 90m is wanted", errForm, text)
		}
		if left := s.left(); kept < left {
			return fmt.Errorf("%w: it is kept for %s without Resolve, so %q would let the work run again sooner", errShorter,
				writtenUp(left), text)
		}
	}
	var value []byte
	if text := form.Get("value"); text != "" {
		value = []byte(text)
	}
	return h.locks.Once(s.name, core.WithRetention(kept)).Resolve(ctx, value)
}

// writtenUp returns a duration as time.ParseDuration reads it, rounded up to a minute, or to a second if it is short.
func writtenUp(d time.Duration) string {
	unit := time.Minute
	if d < time.Hour {
		unit = time.Second
	}
	text := (d + unit - 1).Truncate(unit).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}
