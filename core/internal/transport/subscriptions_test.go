package transport

import (
	"testing"
	"time"
)

// TestConfirmationNotifies: each confirmation notifies the subscribers. A later subscriber is notified at once.
func TestConfirmationNotifies(t *testing.T) {
	t.Parallel()
	s := NewSubscriptions(nil, newNodes(nil, new(Background), nil, nil), nil)
	s.closed = true // no connection
	first := s.Subscribe("c", "")
	if first.Confirmed() || len(first.C) != 0 {
		t.Error("confirmed before Redis has answered")
	}
	s.confirm(first.channel.assigned, "c")
	if second := s.Subscribe("c", ""); len(first.C) != 1 || len(second.C) != 1 || !second.Confirmed() {
		t.Errorf("%d and %d notifications, confirmed %v", len(first.C), len(second.C), second.Confirmed())
	}
	first.channel.assigned.disconnected()
	if first.Confirmed() || len(first.channel.assigned.takeUnsubscribed()) != 1 {
		t.Error("the channel counts as subscribed after its connection has ended")
	}
}

// TestIdleChannelsAreDropped: a channel is unsubscribed after maxIdleRounds without a subscriber, and never with one.
func TestIdleChannelsAreDropped(t *testing.T) {
	t.Parallel()
	s := NewSubscriptions(nil, newNodes(nil, new(Background), nil, nil), nil)
	s.closed = true
	busy, idle := s.Subscribe("busy", ""), s.Subscribe("idle", "")
	idle.Close()
	for round := range maxIdleRounds {
		if got, _ := busy.channel.assigned.prune(); len(got) != 0 {
			t.Errorf("round %d: %q dropped", round, got)
		}
	}
	if got, others := busy.channel.assigned.prune(); len(got) != 1 || got[0] != "idle" || !others {
		t.Errorf("%q dropped, others %v", got, others)
	}
	busy.Close()
}

// TestAddressedMessages: a message with an address notifies the subscriber with that address, and no other.
func TestAddressedMessages(t *testing.T) {
	t.Parallel()
	s := NewSubscriptions(nil, newNodes(nil, new(Background), nil, nil), nil)
	s.closed = true
	if s.SubscribeIfActive("c", "a:1") != nil {
		t.Error("subscribed to a channel that was not requested")
	}
	one, all := s.Subscribe("c", "a:1"), s.Subscribe("c", "")
	s.confirm(one.channel.assigned, "c")
	<-one.C
	<-all.C
	two := s.SubscribeIfActive("c", "a:2")
	if len(two.C) != 0 {
		t.Error("notified of a subscription that was confirmed before")
	}
	granted := func(sub *Subscriber, token int64, slot int) {
		t.Helper()
		if gotToken, gotSlot := sub.LastGrant(); gotToken != token || gotSlot != slot {
			t.Errorf("last grant %d in slot %d, want %d in %d", gotToken, gotSlot, token, slot)
		}
	}
	s.dispatch("c", "a:1 7 3")
	s.dispatch("c", "a:1") // a message without a token leaves LastGrant as it is
	s.dispatch("c", "a:1 6 2")
	s.dispatch("c", "a:1 9007194959773697 4") // no script grants such a token: another program has published it
	s.dispatch("c", "a:1 99999999999999999999")
	s.dispatch("c", "a:3 9")
	if len(one.C) != 1 || len(two.C) != 0 {
		t.Error("not notified, or of a grant to another waiter")
	}
	granted(one, 7, 3)
	granted(two, 0, 0)
	s.dispatch("c", "0")
	if len(all.C) != 1 {
		t.Error("missed a broadcast")
	}
	one.Close()
	s.dispatch("c", "a:1 8")
	granted(one, 7, 3) // no message after Close
}

// TestChannelsThatMove: channels that a master refuses, or unsubscribes by itself, are requested again. No others are.
func TestChannelsThatMove(t *testing.T) {
	t.Parallel()
	s := NewSubscriptions(nil, newNodes(nil, new(Background), nil, nil), nil)
	s.closed = true
	heard := s.Subscribe("heard", "")
	s.Subscribe("refused", "")
	h := heard.channel.assigned
	if got := h.takeUnsubscribed(); len(got) != 2 {
		t.Fatalf("to be subscribed: %q", got)
	}
	s.confirm(h, "heard")
	h.resetRefused()
	if got := h.takeUnsubscribed(); len(got) != 1 || got[0] != "refused" {
		t.Errorf("after a refusal: %q", got)
	}
	if h.unsubscribedByServer("refused") || !h.unsubscribedByServer("heard") || heard.Confirmed() {
		t.Error("a channel was taken for another one")
	}
	if got := h.takeUnsubscribed(); len(got) != 1 || got[0] != "heard" {
		t.Errorf("after a move: %q", got)
	}
	s.confirm(&masterSubscription{}, "heard")
	if heard.Confirmed() {
		t.Error("confirmed by a master that it has left")
	}
}

// TestUnheardChannels: a channel counts as unheard only while its server answers commands.
func TestUnheardChannels(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answers []uint64      // at each look
		every   time.Duration // from one look to the next
		want    bool          // at the last one
	}{
		"answering":              {[]uint64{1, 2, 3, 4}, pingInterval, true},
		"outage":                 {[]uint64{1, 1, 1, 1, 1, 1}, pingInterval, false},
		"restored":               {[]uint64{1, 1, 1, 2, 3}, pingInterval, false},
		"too soon":               {[]uint64{1, 2, 3}, pingInterval, false},
		"outage between looks":   {[]uint64{1, 2}, 5 * pingInterval, false},
		"outages of one look":    {[]uint64{1, 2, 3, 3, 4, 5}, 5 * pingInterval, false},
		"slow connections, long": {[]uint64{1, 2, 3, 4}, 5 * pingInterval, true},
		"quick reconnections":    {[]uint64{1, 2, 3, 4, 5, 6}, pingInterval / 2, false},
		"the same, long":         {[]uint64{1, 2, 3, 4, 5, 6, 7}, pingInterval / 2, true},
	} {
		var u unheard
		now, got := time.Now(), false
		for _, answers := range test.answers {
			got = u.look(answers, now)
			if u.look(answers, now.Add(time.Millisecond)) {
				t.Errorf("%s: warned by a look that came too soon", name)
			}
			now = now.Add(test.every)
		}
		if got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
