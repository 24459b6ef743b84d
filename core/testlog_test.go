package core_test

import (
	"log/slog"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// record is a log that may be written and read at once.
type record = testkit.Log

func textLogger(r *record) *slog.Logger { return slog.New(slog.NewTextHandler(r, nil)) }
