package httpguard

import (
	"context"
	"net/http"
	"time"
)

// AnswerBy returns the time until which the server of a request writes answers, by its WriteTimeout. [Exclusive.Do]
// takes it. ctx is the context of the request. The time counts from the call, which is a little late: the server's
// time began when it had read the header. The zero time is no limit.
func AnswerBy(ctx context.Context) time.Time {
	srv, ok := ctx.Value(http.ServerContextKey).(*http.Server)
	if !ok || srv.WriteTimeout <= 0 {
		return time.Time{}
	}
	return time.Now().Add(srv.WriteTimeout)
}
