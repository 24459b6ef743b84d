package cli

import (
	"io"
	"testing"
)

// TestPanic: a fault of the program ends it, and does not pass for a success.
func TestPanic(t *testing.T) {
	t.Parallel()
	env := &environment{flags: new(grammar), stdout: &stream{to: io.Discard}, copied: &stream{to: io.Discard}, stderr: io.Discard}
	defer func() {
		if recover() == nil {
			t.Error("no panic without a context")
		}
	}()
	t.Errorf("status %d", env.main([]string{"man"}))
}
