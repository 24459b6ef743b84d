package core_test

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func wantErr(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("error %v is not %v", err, target)
	}
}

func waitFor(t testing.TB, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(within):
		t.Fatalf("waited %v for %s", within, what)
	}
}

func receive(t testing.TB, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(within):
		t.Fatalf("waited %v for Lock to return", within)
		return nil
	}
}

// wantInvalid checks that an error names what is wrong.
func wantInvalid(t testing.TB, err, kind error, names string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), names) {
		t.Errorf("%v is no %v that names %s", err, kind, names)
	}
}
