package httplock

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestLabelOfARequest: the method and the pattern, never the path, and no more than a record takes.
func TestLabelOfARequest(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"/orders/{id}":                 "PUT /orders/{id}",
		"PUT /orders/{id}":             "PUT /orders/{id}",
		"POST\texample.com/orders/":    "POST\texample.com/orders/",
		"example.com/orders/{rest...}": "PUT example.com/orders/{rest...}",
		"":                             "",
	} {
		if got := labelOf("PUT", pattern); got != want {
			t.Errorf("pattern %q: label %q, want %q", pattern, got, want)
		}
	}
	if got := labelOf("MADE-UP", "/orders/{id}"); got != "/orders/{id}" {
		t.Errorf("method of a client: label %q", got)
	}
	if got := labelOf("PUT", "/"+strings.Repeat("é", 200)); len(got) > 256 || len(got) < 255 || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}
