package transport

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
)

// silentClient does not answer before the channel is closed.
type silentClient struct {
	redis.UniversalClient
	answer chan struct{}
}

func (d *silentClient) Process(context.Context, redis.Cmder) error {
	<-d.answer
	return nil
}

// TestEveryWaitEnds: a command whose context never ends, on a client that never gives up, fails after AnswerTimeout.
func TestEveryWaitEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := &silentClient{answer: make(chan struct{})}
		e := NewExecutor(rdb, Background{Now: keepalive.SystemClock}, nil)
		began := time.Now()
		_, err := e.Do(context.Background(), echoScript, []string{"key"})
		if took := time.Since(began); err != ErrNotAnswered || took < AnswerTimeout || took > AnswerTimeout+waitBeat {
			t.Errorf("%v after %v", err, took)
		}
		close(rdb.answer)
	})
}

// TestReadTimeoutIsBounded: a reply that gets lost is noticed before the wait for the answer ends, whatever the user's client has, unless
// that waits for ever. Its other timeouts stay.
func TestReadTimeoutIsBounded(t *testing.T) {
	t.Parallel()
	for own, want := range map[time.Duration]time.Duration{
		0: maxReadTimeout, time.Second: time.Second, time.Minute: maxReadTimeout, -1: 0, -2: -1, // as in the options of go-redis
	} {
		rdb := redis.NewClient(&redis.Options{ReadTimeout: own, WriteTimeout: 7 * time.Second})
		o := bare(rdb).Options()
		if o.ReadTimeout != want || o.WriteTimeout != 7*time.Second || o.ReadTimeout >= AnswerTimeout {
			t.Errorf("of %v: %v and %v, want %v", own, o.ReadTimeout, o.WriteTimeout, want)
		}
		_ = rdb.Close()
	}
}

// TestLateAnswersEndNoOtherWait: what comes after the end of a wait, be it the answer or another end of the wait, does not end the wait
// for a later command.
func TestLateAnswersEndNoOtherWait(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(e *Executor, answer chan struct{}){
		"answer after the timeout": func(_ *Executor, answer chan struct{}) {
			time.Sleep(2 * AnswerTimeout)
			answer <- struct{}{}
		},
		"answer at the timeout": func(e *Executor, answer chan struct{}) {
			q := e.Nodes.only.commands
			q.mu.Lock()
			for s := range q.senders {
				s.batch[0].waitUntil = -1
			}
			q.mu.Unlock()
			q.beat()
			answer <- struct{}{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rdb := &silentClient{answer: make(chan struct{})}
				e := NewExecutor(rdb, Background{Now: keepalive.SystemClock}, nil)
				go func() {
					synctest.Wait()
					answer(e, rdb.answer)
				}()
				_, _ = e.Do(context.Background(), echoScript, []string{"key"})
				time.Sleep(3 * AnswerTimeout)
				synctest.Wait()
				began := time.Now()
				if _, err := e.Do(context.Background(), echoScript, []string{"key"}); err != ErrNotAnswered || time.Since(began) < AnswerTimeout {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				close(rdb.answer)
			})
		})
	}
}

// TestWaitsEndByTheClock: a beat that comes late, because the program did not run, ends all waits that are over by then. After that
// there are no beats, although the command is still in flight.
func TestWaitsEndByTheClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := &silentClient{answer: make(chan struct{})}
		e := NewExecutor(rdb, Background{Now: keepalive.SystemClock}, nil)
		q := e.Nodes.only.commands
		go func() {
			synctest.Wait()
			q.mu.Lock()
			q.beats.Stop()
			q.mu.Unlock()
			time.Sleep(AnswerTimeout)
			q.beat()
		}()
		began := time.Now()
		_, err := e.Do(context.Background(), echoScript, []string{"key"})
		if took := time.Since(began); err != ErrNotAnswered || took != AnswerTimeout {
			t.Errorf("%v after %v", err, took)
		}
		synctest.Wait()
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.beating {
			t.Error("a beat is due for which nobody waits")
		}
		close(rdb.answer)
	})
}

// TestStopEndsWaits: nobody waits for an answer any more once the executor was stopped.
func TestStopEndsWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, stop := &silentClient{answer: make(chan struct{})}, make(chan struct{})
		e := NewExecutor(rdb, Background{Now: keepalive.SystemClock}, stop)
		time.AfterFunc(time.Second, func() { close(stop) })
		began := time.Now()
		_, err := e.Do(context.Background(), echoScript, []string{"key"})
		if took := time.Since(began); err != ErrNotAnswered || took < time.Second || took > time.Second+waitBeat {
			t.Errorf("%v after %v", err, took)
		}
		close(rdb.answer)
	})
}
