package core_test

import (
	"log/slog"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// record is a log that may be written and read at once.
type record = redistest.Log

func textLogger(r *record) *slog.Logger { return slog.New(slog.NewTextHandler(r, nil)) }
