package core

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/lockscript"
)

// TestKeysAreDocumented: the package's documentation lists every key that is derived from a name, and no other.
func TestKeysAreDocumented(t *testing.T) {
	t.Parallel()
	k := lockscript.NewKeys("", "{a}")
	group, _ := lockscript.GroupKey("", "{a}")
	var tokens lockscript.TokenKeys
	derived := map[string]bool{}
	for _, key := range append([]string{group, tokens.Of(k.Lock)}, k.WaitingClients, k.Released("id"), k.Forced(),
		k.Deployment(), k.ShareExpiries(), k.Slots(), k.ExclusiveQueue(), k.SharedQueue(), k.Waiters(), k.Once().Lock, k.EndMarks()) {
		name, _, _ := strings.Cut(strings.TrimPrefix(key, lockscript.Reserved), "=")
		name, _, _ = strings.Cut(name, ":")
		derived[name] = true
	}
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^//\tholdfast:(\w+)…`).FindAllStringSubmatch(string(text), -1) {
		listed[match[1]] = true
	}
	for name := range derived {
		if !listed[name] {
			t.Errorf("doc.go does not list holdfast:%s…", name)
		}
	}
	for name := range listed {
		if !derived[name] {
			t.Errorf("doc.go lists holdfast:%s…, which is no key", name)
		}
	}
}
