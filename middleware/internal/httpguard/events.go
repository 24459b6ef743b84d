package httpguard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/core"
)

// Place is what hooks are told of requests as [core.Work.Place].
const Place = "http"

// workOf describes a request to hooks.
func workOf(label, hash string) core.Work {
	return core.Work{Place: Place, Label: label, KeyHash: hash}
}

// Label returns the route of a request for operators, "POST /orders/{id}" for instance. The pattern is in the form of
// [http.ServeMux]. The label is "" if no pattern is known: the path is a client's. So is a method that is not one of the
// standard, of which the label has nothing.
func Label(method, pattern string) string {
	label := pattern
	if label == "" {
		return ""
	}
	if !strings.ContainsAny(label, " \t") && slices.Contains(methods, method) {
		label = method + " " + label
	}
	return strings.ToValidUTF8(label[:min(len(label), maxLabel)], "")
}

// maxLabel is the most that [core.WithLabel] allows.
const maxLabel = 256

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodConnect,
	http.MethodOptions, http.MethodTrace,
}

// refused tells of a request that does not reach the handler.
func (g *guard) refused(ctx context.Context, label string, c *Conflict) *Conflict {
	g.log.refused(ctx, c)
	refusedInside(ctx)
	g.hooks.NotRun(ctx, core.NotRun{
		Work: workOf(label, c.KeyHash), Reason: c.Code, Waited: c.Waited, RetryAfter: c.RetryAfter, Err: c,
	})
	return c
}

// incident tells of a request that runs with less than its guard promises.
func (g *guard) incident(ctx context.Context, work core.Work, kind core.IncidentKind, err error) {
	g.log.incident(ctx, work, kind, err)
	g.hooks.Incident(ctx, core.Incident{Work: work, Kind: kind, Err: err})
}

// FailureOf returns why a run failed whose handler has returned: because of the status of its answer, or because there is none. It
// returns nil for other runs, and for a handler that leaves the answer to something around the guard.
func FailureOf(status int, answered, reportedErrors bool) error {
	switch {
	case reportedErrors:
		return errors.New("holdfast: the handler reported errors")
	case !answered:
		return errors.New("holdfast: the handler did not answer")
	case status >= http.StatusInternalServerError:
		return fmt.Errorf("holdfast: the handler answered %d", status)
	}
	return nil
}
