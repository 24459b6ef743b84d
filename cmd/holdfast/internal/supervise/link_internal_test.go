//go:build linux || darwin

package supervise

import (
	"strings"
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
	var received []string
	r := newLink(other)
	r.receive(func(word, rest string) { received = append(received, word+" "+rest) })
	r.flush()
	_ = other.Close()
	if got := strings.Join(received, "|"); got != wordSay+" "+long+"|"+wordStopped+" 7" {
		t.Errorf("received %d messages: %.60q", len(received), got)
	}
}
