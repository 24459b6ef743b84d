package core

import "sync"

// tasks counts what goes on in a client, so that Close can wait for it: calls, which no longer begin once Close
// was called, and what these still have to do, which does.
type tasks struct {
	mu      sync.Mutex
	running int
	closing chan struct{} // closed when Close begins
	resting chan struct{} // closed when nothing goes on any more, after that
}

func newTasks() *tasks {
	return &tasks{closing: make(chan struct{}), resting: make(chan struct{})}
}

// begin announces a call, which then owes an end. It reports false once the client is closed.
func (t *tasks) begin() bool { return t.add(t.closing) }

// join announces work on behalf of something that goes on, which then owes an end. It reports false once the
// client has come to rest.
func (t *tasks) join() bool { return t.add(t.resting) }

func (t *tasks) add(over <-chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if closed(over) {
		return false
	}
	t.running++
	return true
}

func (t *tasks) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running--; t.running == 0 && closed(t.closing) {
		close(t.resting)
	}
}

// close lets no more calls begin. It counts as a task itself and owes an end; it reports false if it was called
// before.
func (t *tasks) close() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if closed(t.closing) {
		return false
	}
	close(t.closing)
	t.running++
	return true
}

func (t *tasks) isClosed() bool { return closed(t.closing) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
