package inspector

import (
	"context"
	"sync"
	"time"
)

const (
	// leastInterval is the pause between two reads of a page that is open: a change shows within a second.
	leastInterval = 500 * time.Millisecond
	// mostInterval bounds the pause if reads take long. A page is not much older, and learns of an outage after it.
	mostInterval = 5 * time.Second
	// failedInterval is the pause after a read that has failed, so that a page is soon up to date after an outage.
	failedInterval = 2 * time.Second
	// restFactor is how many times as long as a read the pause after it lasts, up to mostInterval. So a page keeps Redis busy for at
	// most a twentieth of the time, while its reads take less than a quarter of a second.
	restFactor = 20
)

// broadcaster reads each page that is open anywhere once, for all of its viewers.
type broadcaster struct {
	lifetime context.Context // of all topics
	most     int             // viewers
	readers  sync.WaitGroup

	mu      sync.Mutex         // guards what follows
	end     context.CancelFunc // of the lifetime
	viewers int
	topics  map[string]*topic
}

// topic is a page with its parameters, as long as it has viewers. Its fields are guarded by the broadcaster's mu.
type topic struct {
	viewers map[*viewer]struct{}
	last    *event // nil until the first read
	read    time.Time
	stop    context.CancelFunc
}

// viewer is one open page.
type viewer struct {
	news chan *event // has room for one: a slow viewer misses states in between, and keeps no reader waiting
}

// event is a state of a page, or why there is none.
type event struct {
	html    string
	problem bool
}

func newBroadcaster(most int) *broadcaster {
	lifetime, end := context.WithCancel(context.Background())
	return &broadcaster{lifetime: lifetime, end: end, most: most, topics: make(map[string]*topic)}
}

// join makes a viewer of a topic. It returns false if there are too many viewers, or after close. A quarter of the places, at
// least one, is for operators. read is only called if the topic has no other viewer. The caller must call leave.
func (b *broadcaster) join(key string, operator bool, read func(ctx context.Context) event) (v *viewer, leave func(), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	most := b.most
	if !operator {
		most -= max(most/4, 1)
	}
	if b.viewers >= most || b.lifetime.Err() != nil {
		return nil, nil, false
	}
	b.viewers++
	t := b.topics[key]
	if t == nil {
		ctx, stop := context.WithCancel(b.lifetime)
		t = &topic{viewers: make(map[*viewer]struct{}), stop: stop}
		b.topics[key] = t
		b.readers.Go(func() { b.readOn(ctx, t, read) })
	}
	v = &viewer{news: make(chan *event, 1)}
	t.viewers[v] = struct{}{}
	// An older state would look like a new one. The page has just been loaded, so its own state will do until the next read.
	if t.last != nil && (t.last.problem || time.Since(t.read) <= leastInterval) {
		v.news <- t.last
	}
	return v, func() { b.leave(key, t, v) }, true
}

func (b *broadcaster) leave(key string, t *topic, v *viewer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.viewers--
	delete(t.viewers, v)
	if len(t.viewers) == 0 {
		t.stop()
		delete(b.topics, key)
	}
}

// readOn reads a topic until it is stopped.
func (b *broadcaster) readOn(ctx context.Context, t *topic, read func(ctx context.Context) event) {
	for ctx.Err() == nil {
		began := time.Now()
		e := read(ctx)
		if ctx.Err() != nil {
			return
		}
		b.publish(t, &e)
		pause := time.NewTimer(pauseAfter(time.Since(began), e.problem))
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

// pauseAfter returns the pause after a read that took so long.
func pauseAfter(took time.Duration, failed bool) time.Duration {
	if failed {
		return failedInterval
	}
	return min(max(leastInterval, restFactor*took), mostInterval)
}

// publish sends an event to all viewers of a topic, even one that equals the last: the state was read again, or the problem remains.
func (b *broadcaster) publish(t *topic, e *event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.last, t.read = e, time.Now()
	for v := range t.viewers {
		select {
		case <-v.news: // the viewer has not taken the one before
		default:
		}
		v.news <- e
	}
}

// close ends all topics, and waits for their readers. Joining is refused from then on.
func (b *broadcaster) close() {
	b.mu.Lock()
	b.end()
	b.mu.Unlock()
	b.readers.Wait()
}
