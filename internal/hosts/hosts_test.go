package hosts

import (
	"net/http"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	if err := Check([]string{"localhost", "127.0.0.1", "::1", "debug.example.com"}); err != nil {
		t.Error(err)
	}
	for _, names := range [][]string{nil, {""}, {"localhost:6060"}, {"[::1]"}, {"http://localhost"}, {"a b"}, {"localhost", ""}} {
		if Check(names) == nil {
			t.Errorf("%q was taken", names)
		}
	}
}

func TestServes(t *testing.T) {
	t.Parallel()
	names := []string{"localhost", "127.0.0.1", "::1"}
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST:6060": true, "127.0.0.1:1": true, "[::1]:6060": true, "[::1]": true,
		"": false, "evil.example": false, "evil.example:6060": false, "localhost.evil.example": false, "localhost.": false,
	} {
		if Serves(names, &http.Request{Host: host}) != want {
			t.Errorf("%q: want %v", host, want)
		}
		if !Serves(nil, &http.Request{Host: host}) {
			t.Errorf("%q is refused without names", host)
		}
	}
}
