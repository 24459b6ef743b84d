package pubsub

import "testing"

// TestCallsReachOneWaiter: a call wakes who waits for it and nobody else, and is passed on if nobody does any more.
func TestCallsReachOneWaiter(t *testing.T) {
	t.Parallel()
	const channel, number, other = "channel", "2305843009213693953", "2305843009213693954"
	passed := 0
	s := &Subscriptions{
		clientNumber: number, channels: make(map[string]*channelState),
		wakeNext: func(string, string) { passed++ },
	}
	s.channels[channel] = &channelState{broadcast: make(map[*Subscriber]struct{}), addressed: make(map[string]*Subscriber)}
	l, plain := s.SubscribeAsClientIfActive(channel, "lock", "set"), &Subscriber{c: make(chan struct{}, 1)}
	s.addLocked(plain, channel)
	s.dispatch(channel, other)
	if len(l.C) != 0 || len(plain.C) != 0 {
		t.Error("the call of another client has woken somebody")
	}
	s.dispatch(channel, number)
	if len(l.C) != 1 || len(plain.C) != 0 || !l.StartAsking() || passed != 0 {
		t.Errorf("called: %d and %d woken, passed on %d times", len(l.C), len(plain.C), passed)
	}
	if l.StartAsking() {
		t.Error("called once, told twice")
	}
	l.Close()
	s.dispatch(channel, other)
	if passed != 0 {
		t.Error("the call of another client was passed on")
	}
	if s.dispatch(channel, number); passed != 1 {
		t.Errorf("called when nobody waits: passed on %d times", passed)
	}
}
