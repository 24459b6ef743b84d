package transport

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
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

// TestPendingAfterGoexit: a hook of the user's client that ends the goroutine delays one command, and no other. That one keeps its
// intervals, of which the least are half of 10, 20, 40 and 80 ms. It has none while the server answers others of the same batch.
func TestPendingAfterGoexit(t *testing.T) {
	t.Parallel()
	for beside, intervals := range []time.Duration{1 + 2 + 4 + 8, 1 + 2 + 4} {
		synctest.Test(t, func(t *testing.T) {
			clock := func() keepalive.Instant { return keepalive.Instant(time.Now().UnixNano()) } // that of the timers here
			p := newPending(&Background{
				Now: clock, Operations: keepalive.NewOperations(), Confirmed: func() {},
				Go:        func(work func(context.Context)) bool { go work(context.Background()); return true },
				Recovered: func(call func()) { call() },
			})
			ended := make(chan error, 3)
			add := func(id string, send func() error) {
				now := clock()
				p.Add(&PendingCommand{
					ID: id, Due: now, Until: now.Add(time.Hour), Send: func(context.Context) error { return send() },
					Ended: func(err error) { ended <- err },
				})
			}
			sends, began := 0, time.Now()
			p.mu.Lock() // so that the first batch has all
			p.sending = true
			p.mu.Unlock()
			add("exits", func() error {
				if sends++; sends < 5 {
					runtime.Goexit()
				}
				return nil
			})
			for range beside {
				add("beside", func() error { return nil })
			}
			go p.run(context.Background())
			for range 1 + beside {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
			synctest.Wait()
			add("later", func() error { return nil })
			if err := <-ended; err != nil || sends != 5 || time.Since(began) < intervals*FirstRetryInterval/2 {
				t.Errorf("%v; sent %d times in %v, want 5 times", err, sends, time.Since(began))
			}
			synctest.Wait()
			if p.Len() != 0 || p.sending {
				t.Errorf("%d left, sending = %v", p.Len(), p.sending)
			}
		})
	}
}
