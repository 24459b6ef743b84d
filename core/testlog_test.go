package core_test

import (
	"bytes"
	"log/slog"
	"sync"
)

// record is a log that may be written and read at once.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

func textLogger(r *record) *slog.Logger { return slog.New(slog.NewTextHandler(r, nil)) }
