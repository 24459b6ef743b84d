package inventory

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// TestSlots: sets of slots are written as ranges, and read again.
func TestSlots(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "0", "16383", "0-16383", "0-5460,5462,10923-16383"} {
		s, ok := parseSlots(text)
		if got := s.String(); !ok || got != text {
			t.Errorf("%q became %q, %v", text, got, ok)
		}
	}
	for _, text := range []string{"16384", "-1", "1-", "a", "1,", "0-16384", "1-2-3"} {
		if s, ok := parseSlots(text); ok {
			t.Errorf("%q was read as %q", text, s.String())
		}
	}
	a, _ := parseSlots("0-100")
	b, _ := parseSlots("50-200")
	kept, removed := a, a
	kept.keepAll(&b)
	removed.removeAll(&b)
	if kept.String() != "50-100" || removed.String() != "0-49" || removed.firstMissing() != 50 {
		t.Errorf("kept %s, left %s", kept.String(), removed.String())
	}
	if a.addAll(&b); a.String() != "0-200" || a.empty() || !new(slots).empty() {
		t.Errorf("together %s", a.String())
	}
}

// TestReadOwn: a server's own slots are the slots in its line, without migrating ones.
func TestReadOwn(t *testing.T) {
	t.Parallel()
	const nodes = `07c3 127.0.0.1:30004@31004,host4 slave e7d1 0 1426238317239 4 connected
67ed 127.0.0.1:30002@31002,host2 master - 0 1426238316232 2 connected 5461-10922
e7d1 127.0.0.1:30001@31001,host1 myself,master - 0 0 1 connected 0-5459 5461 [5460->-67ed] [77-<-292f]
`
	own, err := readOwn(transport.Answer{Reply: nodes})
	if err != nil || own.String() != "0-5459,5461" {
		t.Errorf("%s, %v", own.String(), err)
	}
	own, err = readOwn(transport.Answer{Reply: strings.ReplaceAll(nodes, "slave", "myself,slave")[:70]})
	if err != nil || !own.empty() {
		t.Errorf("a replica owns %s, %v", own.String(), err)
	}
	refused := errors.New("NOPERM")
	if _, err := readOwn(transport.Answer{Err: refused}); err != refused {
		t.Error(err)
	}
}

// TestCursor: the text of a cursor has all of it, and only letters that need no escape in an address.
func TestCursor(t *testing.T) {
	t.Parallel()
	c := cursor{node: "[::1]:6379", server: "master8371b4fb", at: "18446744073709551615"}
	c.done, _ = parseSlots("0-100")
	c.scanning, _ = parseSlots("101-16383")
	text := c.String()
	if strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
		t.Errorf("%q", text)
	}
	if got, err := parseCursor(text); err != nil || got != c {
		t.Errorf("%+v, %v", got, err)
	}
}

// FuzzParseCursor: no text of a caller makes a panic, and what is taken for a cursor stays the same.
func FuzzParseCursor(f *testing.F) {
	for _, text := range []string{"", "0", "!", new(cursor).String(), (&cursor{node: "a:1", at: "7"}).String()} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCursor(text)
		if err != nil {
			if !errors.Is(err, ErrCursor) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if again, err := parseCursor(c.String()); err != nil || again != c {
			t.Errorf("%q became %+v, %v", text, again, err)
		}
	})
}
