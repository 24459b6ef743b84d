package request

import (
	"slices"
	"testing"
)

func TestWildcards(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string][]string{
		"":                                nil,
		"POST example.com/orders":         nil,
		"POST /orders/{id}":               {"id"},
		"/orders/{id}/items/{item...}":    {"id", "item"},
		"/orders/{$}":                     nil,
		"/orders/{id:[0-9]+}/v{version}/": {"id", "version"},
	} {
		if got := wildcards(pattern); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
}
