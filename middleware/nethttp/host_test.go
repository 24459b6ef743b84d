package httplock

import (
	"errors"
	"strings"
	"testing"
)

// TestHosts: each line is one host, however it is written.
func TestHosts(t *testing.T) {
	t.Parallel()
	for want, hosts := range map[string][]string{
		"a.example":      {"a.example", "A.Example", "a.example.", "a.example:80", "a.example:443", "A.EXAMPLE.:443", "a.example:"},
		"b.example":      {"b.example"},
		"a.example:8080": {"a.example:8080", "A.example.:8080"},
		"192.0.2.7":      {"192.0.2.7", "192.0.2.7:80"},
		"2001:db8::7":    {"[2001:db8::7]", "[2001:DB8:0:0::7]:443"},
		"[::1]:8080":     {"[::1]:8080", "[0:0:0:0:0:0:0:1]:8080"},
	} {
		key := mustKey(t, "host", want)
		for _, host := range hosts {
			if got, err := HostKey(host); err != nil || !got.Equal(key) {
				t.Errorf("%s: error %v, the key of %s: %v", host, err, want, got.Equal(key))
			}
		}
	}
}

func TestNoHost(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]error{
		"": ErrKeyRequired, ".": ErrKeyRequired, ":80": ErrKeyRequired,
		strings.Repeat("a", 256): ErrKeyInvalid,
	} {
		if key, err := HostKey(host); !errors.Is(err, want) || !key.IsZero() {
			t.Errorf("%q: key %v, error %v, want %v", host, key, err, want)
		}
	}
}
