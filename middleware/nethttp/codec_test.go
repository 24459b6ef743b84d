package httplock

import (
	"bytes"
	"testing"
)

func TestAESGCM(t *testing.T) {
	t.Parallel()
	old, current := bytes.Repeat([]byte{1}, 16), bytes.Repeat([]byte{2}, 32)
	before, err := NewAESGCM(old)
	if err != nil {
		t.Fatal(err)
	}
	after, err := NewAESGCM(current, old)
	if err != nil {
		t.Fatal(err)
	}
	text := []byte("card 4242")
	for name, seal := range map[string]Codec{"old": before, "current": after} {
		sealed, err := seal.Seal(text, "record")
		if err != nil || bytes.Contains(sealed, text) {
			t.Fatalf("%s: sealed %q, %v", name, sealed, err)
		}
		again, err := seal.Seal(text, "record")
		if err != nil || bytes.Equal(again, sealed) {
			t.Errorf("%s: the same text is sealed in the same way twice: %v", name, err)
		}
		if opened, err := after.Open(sealed, "record"); err != nil || !bytes.Equal(opened, text) {
			t.Errorf("%s: opened %q, %v", name, opened, err)
		}
		if _, err := after.Open(sealed, "other"); err == nil {
			t.Errorf("%s: opened in another place", name)
		}
		sealed[len(sealed)-1] ^= 1
		if _, err := after.Open(sealed, "record"); err == nil {
			t.Errorf("%s: opened although it was changed", name)
		}
	}
	sealed, _ := after.Seal(text, "record")
	if _, err := before.Open(sealed, "record"); err == nil {
		t.Error("opened without the key")
	}
	if _, err := after.Open(nil, "record"); err == nil {
		t.Error("opened nothing")
	}
	if _, err := NewAESGCM(current, []byte("short")); err == nil {
		t.Error("a short key is accepted")
	}
}
