package transport

import "testing"

// TestNumbersReachOneWaiter: the number of a client wakes the subscriber that waits under it, and no other. If that one has
// left, the next client is woken.
func TestNumbersReachOneWaiter(t *testing.T) {
	t.Parallel()
	const channel, number, other = "channel", "2305843009213693953", "2305843009213693954"
	passed := 0
	s := &Subscriptions{
		clientNumber: number, channels: make(map[string]*channelState),
		wakeNext: func(string, string) { passed++ },
	}
	s.channels[channel] = &channelState{broadcast: make(map[*Subscriber]struct{}), addressed: make(map[string]*Subscriber)}
	l, plain := s.SubscribeAsClientIfActive(channel, "lock", "set"), &Subscriber{C: make(chan struct{}, 1)}
	s.addLocked(plain, channel)
	s.dispatch(channel, other)
	if len(l.C) != 0 || len(plain.C) != 0 {
		t.Error("the number of another client has woken a subscriber")
	}
	s.dispatch(channel, number)
	if len(l.C) != 1 || len(plain.C) != 0 || !l.StartAsking() || passed != 0 {
		t.Errorf("%d and %d woken, the next client %d times", len(l.C), len(plain.C), passed)
	}
	if l.StartAsking() {
		t.Error("StartAsking returned true twice for one message")
	}
	l.Close()
	s.dispatch(channel, other)
	if passed != 0 {
		t.Error("the number of another client was passed on")
	}
	if s.dispatch(channel, number); passed != 1 {
		t.Errorf("without a subscriber, the next client was woken %d times", passed)
	}
}
