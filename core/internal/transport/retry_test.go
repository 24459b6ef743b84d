package transport

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestRetryEnds: how often a command is sent, and for how long, by its limit and by how fast its tries fail. A server that is
// silent costs few tries, and refusals that come at once are endured for the limit.
func TestRetryEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit, try        time.Duration
		minTries, tries   int // at most
		shortest, longest time.Duration
	}{
		"RefusedNoLimit":  {limit: 0, try: 0, minTries: 6, tries: 12, shortest: minLimit, longest: 2 * minLimit},
		"RefusedLimit":    {limit: OutageLimit, try: 0, minTries: 10, tries: 30, shortest: OutageLimit, longest: OutageLimit + time.Second},
		"SilentNoLimit":   {limit: 0, try: AnswerTimeout, minTries: 2, tries: 2, longest: 2*AnswerTimeout + time.Second},
		"SilentLimit":     {limit: OutageLimit, try: AnswerTimeout, minTries: 2, tries: 2, longest: 2*AnswerTimeout + time.Second},
		"SlowRefusals":    {limit: 0, try: time.Second, minTries: 4, tries: 4, longest: 5 * time.Second},
		"LongerThanLimit": {limit: 3 * OutageLimit, try: AnswerTimeout, minTries: 4, tries: 4, shortest: 3 * OutageLimit, longest: 5 * AnswerTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, tries := time.Now(), 0
				err := Retry(context.Background(), c.limit, Transient, func() error {
					tries++
					time.Sleep(c.try)
					return ErrNotAnswered
				})
				took := time.Since(began)
				if err != ErrNotAnswered || tries < c.minTries || tries > c.tries || took < c.shortest || took > c.longest {
					t.Errorf("%v after %d tries and %v", err, tries, took)
				}
			})
		})
	}
}

// TestRetryAfterSilence: a first try on a dead connection is silent, and the next one succeeds.
func TestRetryAfterSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		err := Retry(context.Background(), 0, Transient, func() error {
			if tries++; tries > 1 {
				return nil
			}
			time.Sleep(2 * AnswerTimeout)
			return ErrNotAnswered
		})
		if err != nil {
			t.Errorf("%v after %d tries", err, tries)
		}
	})
}
