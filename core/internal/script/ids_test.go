package script_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/script"
)

// TestClientOf: only the owners that clients make have a client.
func TestClientOf(t *testing.T) {
	t.Parallel()
	const client = "0b7e15a2-9c1f-4f0e-8a55-3d1f4c9be0aa"
	ids := script.IDs{Client: client}
	for owner, want := range map[string]string{
		ids.Next(): client, client + ":18446744073709551615": client,
		"": "", "Ada": "", client: "", client + ":": "", client + ":7x": "", client + ":184467440737095516150": "", "x" + client[1:] + ":1": "",
		client[:8] + "." + client[9:] + ":1": "", "job:1": "",
	} {
		if got, ok := script.ClientOf(owner); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %v", owner, got, ok)
		}
	}
}
