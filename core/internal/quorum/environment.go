package quorum

import (
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Environment is what a quorum needs of the client. It must not be changed after New. Its functions are called from many
// goroutines at once.
type Environment struct {
	transport.Background
	IDs    *script.IDs
	Prefix string // of keys
	Logger *slog.Logger

	NodeTimeout  time.Duration // for each request to one server; 0 for one that follows from the TTL
	RestartDelay time.Duration // for which a server grants no locks after a start

	// TrustedUntil returns until when a grant of that TTL is valid whose first request was sent at t: the TTL less the drift.
	TrustedUntil func(t keepalive.Instant, ttl time.Duration) keepalive.Instant
	// SameServer returns the error of two nodes, numbered from 1, that are the same server. a is the smaller number.
	SameServer func(a, b int) error
	// TooManyPending warns that a server has transport.MaxPending releases to come, so that further holds expire.
	TooManyPending func()
	// Closed is the error of a request of a client that has finished, and so runs no goroutine for a server any more.
	Closed error
}
