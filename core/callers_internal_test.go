package core

import "testing"

// TestCallsReachOneWaiter: a call wakes who waits for it and nobody else, and is passed on if nobody does any more.
func TestCallsReachOneWaiter(t *testing.T) {
	t.Parallel()
	const channel, number, other = "channel", "2305843009213693953", "2305843009213693954"
	passed := 0
	s := &listeners{
		number: number, topics: make(map[string]*topic),
		pass: func(*caller) { passed++ },
	}
	s.topics[channel] = &topic{everybody: make(map[*listener]struct{}), addressed: make(map[string]*listener)}
	l, plain := s.callsJoining(keys{channel: channel}), &listener{c: make(chan struct{}, 1)}
	s.add(plain, channel)
	s.tell(channel, other)
	if len(l.C) != 0 || len(plain.C) != 0 {
		t.Error("the call of another client has woken somebody")
	}
	s.tell(channel, number)
	if len(l.C) != 1 || len(plain.C) != 0 || !l.asks() || passed != 0 {
		t.Errorf("called: %d and %d woken, passed on %d times", len(l.C), len(plain.C), passed)
	}
	if l.asks() {
		t.Error("called once, told twice")
	}
	l.close()
	s.tell(channel, other)
	if passed != 0 {
		t.Error("the call of another client was passed on")
	}
	if s.tell(channel, number); passed != 1 {
		t.Errorf("called when nobody waits: passed on %d times", passed)
	}
}
