package httplock

import (
	"context"

	"github.com/holdfast-go/holdfast/middleware"
)

// What options and hooks are about.
type (
	// Payload is what a request asks for.
	Payload = middleware.Payload
	// Outcome is how a handler ended.
	Outcome = middleware.Outcome
	// Disposition is what becomes of the record of a run.
	Disposition = middleware.Disposition
	// Response is an answer as it is recorded.
	Response = middleware.Response
)

// The dispositions.
const (
	Auto      = middleware.Auto
	Completed = middleware.Completed
	Released  = middleware.Released
	Held      = middleware.Held
)

// Attempt returns the number of the attempt for the key of a request behind Once or Idempotent, from 1; 0 for any
// other request.
func Attempt(ctx context.Context) int { return middleware.Attempt(ctx) }

// Degraded returns true if ctx is that of a request which runs unguarded: see [FailOpen].
func Degraded(ctx context.Context) bool { return middleware.Degraded(ctx) }
