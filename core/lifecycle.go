package core

import "sync"

// lifecycle counts the running operations of a client, so that Close can wait for them. After Close has begun, no call
// of a user starts, but internal work for what is running still does.
type lifecycle struct {
	mu       sync.Mutex
	running  int
	closing  chan struct{} // closed when Close begins
	finished chan struct{} // closed after that, when nothing is running any more
}

func newLifecycle() *lifecycle {
	return &lifecycle{closing: make(chan struct{}), finished: make(chan struct{})}
}

// start counts a call of a user. It returns false once Close has begun. If it returns true, the caller must call finish.
func (t *lifecycle) start() bool { return t.addUnless(t.closing) }

// startInternal counts internal work on behalf of something that is running. It returns false once nothing is running
// after Close. If it returns true, the caller must call finish.
func (t *lifecycle) startInternal() bool { return t.addUnless(t.finished) }

func (t *lifecycle) addUnless(over <-chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if closed(over) {
		return false
	}
	t.running++
	return true
}

func (t *lifecycle) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running--; t.running == 0 && closed(t.closing) {
		close(t.finished)
	}
}

// beginClose lets no more calls of users start. It returns false if it was called before. If it returns true, it counts
// as running itself, and the caller must call finish.
func (t *lifecycle) beginClose() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if closed(t.closing) {
		return false
	}
	close(t.closing)
	t.running++
	return true
}

func (t *lifecycle) isClosed() bool { return closed(t.closing) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
