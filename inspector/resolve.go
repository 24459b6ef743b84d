package inspector

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/foreign"
	"github.com/holdfast-go/holdfast/internal/httprecord"
)

const (
	// leastRetention is the default of core: a resolved record is kept as long, unless its operator says otherwise.
	leastRetention = 24 * time.Hour
	// mostRetention is the longest that core allows.
	mostRetention = 10 * 365 * 24 * time.Hour
)

// resolve completes a record. It never shortens the time for which the record is kept, which protects against a second run.
func resolve(ctx context.Context, h *Handler, s subject, form url.Values) error {
	if err := s.checkSeen(form); err != nil {
		return err
	}
	kept := s.kept()
	if text := form.Get("keep"); text != "" {
		var err error
		if kept, err = time.ParseDuration(text); err != nil {
			return fmt.Errorf("%w: keep for %s: a time such as 24h or 90m is wanted", errForm, foreign.Quote(text, mostWho))
		}
		if left := s.left(); kept < left {
			return fmt.Errorf("%w: it is kept for %s without Resolve, so %s would let the work run again sooner", errShorter,
				writtenUp(left), foreign.Quote(text, mostWho))
		}
	}
	value, err := resolvedValue(s, form)
	if err != nil {
		return err
	}
	return h.locks.Once(s.name, core.WithRetention(kept)).Resolve(ctx, s.record, value)
}

// resolvedValue returns what a form wants to be recorded: a value, or the response of an HTTP guard for its client.
func resolvedValue(s subject, form url.Values) ([]byte, error) {
	value, response := form.Get("value"), form.Get("response")
	switch {
	case response == "" && value == "":
		return nil, nil
	case s.Encoded():
		return nil, fmt.Errorf("%w: only the guard of this record can record a result, with Guard.Resolve in Go", errForm)
	case value != "" && response != "":
		return nil, fmt.Errorf("%w: a value and a response: one of them is recorded", errForm)
	case value != "" && s.OfHTTP():
		return nil, fmt.Errorf("%w: the record of an HTTP guard, so it has a response and no value", errForm)
	case value != "":
		return []byte(value), nil
	case !s.OfHTTP():
		return nil, fmt.Errorf("%w: not the record of an HTTP guard, so it has a value and no response", errForm)
	}
	// Browsers send each line break of a text as CRLF.
	text := strings.NewReader(strings.ReplaceAll(response, "\r\n", "\n"))
	r, err := httprecord.Read(text, httprecord.MaxBody)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", errForm, foreign.Line(strings.TrimPrefix(err.Error(), "holdfast: "), mostVisible))
	}
	return r.Encode(), nil
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
