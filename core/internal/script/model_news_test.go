package script_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/script"
)

// ears hear what is said about all locks.
type ears struct {
	mu    sync.Mutex
	heard map[string][]string // by the channel on which the releases of a lock are announced
	more  chan struct{}       // closed and replaced when something was heard
}

// silentChannel ends the name of a channel on which an episode says that it is over.
const silentChannel = ":over"

func listenAll(t *testing.T, instance *script.Instance) *ears {
	t.Helper()
	ctx := context.Background()
	sub := instance.Exec.Client.PSubscribe(ctx, "redisson_lock__channel:*")
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	e := &ears{heard: make(map[string][]string), more: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			message, err := sub.ReceiveMessage(ctx)
			if err != nil {
				return
			}
			e.hear(message)
		}
	}()
	t.Cleanup(func() {
		_ = sub.Close()
		<-ended
	})
	return e
}

// hear keeps a message under the name of its lock.
func (e *ears) hear(m *redis.Message) {
	lock, _, _ := strings.Cut(m.Channel, "}")
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard[lock+"}"] = append(e.heard[lock+"}"], m.Payload)
	close(e.more)
	e.more = make(chan struct{})
}

// take returns what has been said on a channel until that word, false if that was not said in time.
func (e *ears) take(channel, word string, limit time.Time) ([]string, bool) {
	late := time.After(time.Until(limit))
	for {
		e.mu.Lock()
		all, more := e.heard[channel], e.more
		if n := len(all); n > 0 && all[n-1] == word {
			delete(e.heard, channel)
			e.mu.Unlock()
			return all[:n-1], true
		}
		e.mu.Unlock()
		select {
		case <-more:
		case <-late:
			return nil, false
		}
	}
}

// messages returns what has been said to the waiters of the lock: the grants and announcements, and the others, which
// are hints to ask. It returns false if the messages did not come in time.
func (e *episode) messages() (grants, hints []string, ok bool) {
	word := strconv.Itoa(e.ops)
	err := e.instance.Exec.Client.Publish(context.Background(), e.keys.Channel+silentChannel, "until "+word).Err()
	if err != nil {
		e.differs("PUBLISH: %v", err)
	}
	all, ok := e.ears.take(e.keys.Channel, "until "+word, e.began.Add(patience))
	for _, message := range all {
		if message == "0" || strings.Contains(message, " ") {
			grants = append(grants, message)
		} else {
			hints = append(hints, message)
		}
	}
	return grants, hints, ok
}

// checkNews compares what was said with what the model says.
func (e *episode) checkNews() {
	heard, _, ok := e.messages()
	if !ok {
		return
	}
	e.compareNews(heard, e.model.told)
	e.model.told = nil
}

func (e *episode) compareNews(heard []string, told []news) {
	for i, message := range heard {
		if i == len(told) {
			break
		}
		id, grant, _ := strings.Cut(message, " ")
		token, slot, _ := strings.Cut(grant, " ")
		if slot != told[i].slot {
			e.differs("message %d: %q, want %+v", i, message, told[i])
		}
		if id == told[i].id && token != "" {
			number, _ := strconv.ParseInt(token, 10, 64)
			e.learn(told[i].grant, number)
		} else if told[i].id != "" || message != "0" {
			e.differs("message %d: %q, want %+v", i, message, told[i])
		}
	}
	if len(heard) != len(told) {
		e.differs("%d messages, want %d:\n%q\n%s", len(heard), len(told), heard, fmt.Sprint(told))
	}
}
