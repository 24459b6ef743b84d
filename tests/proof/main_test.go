package proof_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

func TestMain(m *testing.M) { coretest.Main(m, nil) }

// pays makes a run that commits a value, and returns it.
func pays(s *coretest.Proof, value string) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) { return s.InTx(ctx, value) }
}

// never fails the test if it runs.
func never(t *testing.T) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) {
		t.Error("it ran")
		return nil, nil
	}
}
