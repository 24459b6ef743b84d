package holdfast_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestResolvedAnewBehindTheQuestion: between question and answer, a record that was resolved by hand is forgotten and resolved by hand
// again. The program keeps the second record, and exits with 75.
func TestResolvedAnewBehindTheQuestion(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	once := newLocks(t, srv).Once("k")
	term := openTerminal(t, srv)
	resolve := func(value string) core.Record {
		t.Helper()
		if err := once.Resolve(t.Context(), core.Record{}, []byte(value)); err != nil {
			t.Fatal(err)
		}
		record, err := once.Peek(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return record
	}
	first := resolve("receipt 1")
	term.run("hf forget k", "[y/N] ")
	if err := once.Forget(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	second := resolve("receipt 2")
	term.run("y", "has changed since it was seen", "ready> ")
	term.run("echo status $?", "status 75", "ready> ")
	if r, err := once.Peek(t.Context()); err != nil || !r.Ended.Equal(second.Ended) || string(r.Value) != "receipt 2" {
		t.Errorf("%+v, %v", r, err)
	}
}
