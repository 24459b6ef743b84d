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
		req := item{Pattern: pattern, Payload: Payload{Method: "PUT", Target: "/orders/7", Path: "/orders/7"}}
		if got := req.label(); got != want {
			t.Errorf("pattern %q: label %q, want %q", pattern, got, want)
		}
	}
	if got := labelOf("MADE-UP", "/orders/{id}"); got != "/orders/{id}" {
		t.Errorf("method of a client: label %q", got)
	}
	long := item{Pattern: "/" + strings.Repeat("é", 200), Payload: Payload{Method: "PUT"}}
	if got := long.label(); len(got) > maxLabel || len(got) < maxLabel-1 || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}
