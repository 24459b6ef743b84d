package httplock

import (
	"context"

	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
)

// What options are about.
type (
	// Payload is what a request asks for.
	Payload = httpguard.Payload
	// Outcome is how a handler ended.
	Outcome = httpguard.Outcome
	// Disposition is what becomes of the record of a run.
	Disposition = httpguard.Disposition
	// Response is an answer as it is recorded.
	Response = httpguard.Response
)

// The dispositions.
const (
	Auto      = httpguard.Auto
	Completed = httpguard.Completed
	Released  = httpguard.Released
	Held      = httpguard.Held
)

// Degraded returns true if ctx is that of a request which runs unguarded: see [FailOpen].
func Degraded(ctx context.Context) bool { return httpguard.Degraded(ctx) }
