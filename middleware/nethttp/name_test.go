package httplock

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/httprecord"
)

// TestIsRecordName: of the names that guards make, and of no others.
func TestIsRecordName(t *testing.T) {
	t.Parallel()
	route, err := NewKey("order", "7")
	if err != nil {
		t.Fatal(err)
	}
	client, err := IdempotencyKey("k")
	if err != nil {
		t.Fatal(err)
	}
	scoped, err := Join(route, client)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		route.Name(nil): true, scoped.Name([]byte("secret")): true,
		"http:": false, "http:orders": false, "asynq:" + route.Hash(): false, route.Name(nil) + "x": false, "charge:7": false,
	} {
		if got := httprecord.IsName(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
