package supervise

import (
	"strings"
	"syscall"
	"testing"
)

// TestLink: messages arrive in order, however long, until the other process ends.
func TestLink(t *testing.T) {
	t.Parallel()
	mine, other, err := newLinkFiles()
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("long ", 1<<16)
	l := newLink(mine)
	go func() {
		l.send(wordSay, long)
		l.sendNumber(wordStopped, 7)
		l.flush()
		l.send(wordGo) // too late
		_ = mine.Close()
	}()
	var heard []string
	r := newLink(other)
	r.receive(func(word, rest string) { heard = append(heard, word+" "+rest) })
	r.flush()
	_ = other.Close()
	if got := strings.Join(heard, "|"); got != wordSay+" "+long+"|"+wordStopped+" 7" {
		t.Errorf("heard %d messages: %.60q", len(heard), got)
	}
}

// TestFrontStatus: a keeper that was killed has lost the lock, unless the front has received the signal too.
func TestFrontStatus(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		keeper   syscall.WaitStatus
		received syscall.Signal
		want     int
	}{
		{7 << 8, 0, 7},
		{7 << 8, syscall.SIGTERM, 7},
		{syscall.WaitStatus(syscall.SIGKILL), syscall.SIGTERM, StatusLost},
		{syscall.WaitStatus(syscall.SIGTERM), 0, StatusLost},
		{syscall.WaitStatus(syscall.SIGTERM), syscall.SIGTERM, 143},
		{syscall.WaitStatus(syscall.SIGINT), 0, 130},
	} {
		f := new(front)
		f.received.Store(int32(test.received))
		if got := f.exitStatus(test.keeper); got != test.want {
			t.Errorf("%+v: %d", test, got)
		}
	}
}
