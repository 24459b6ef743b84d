package httpguard

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Place is what hooks are told of requests as [core.Work.Place].
const Place = "http"

// Label returns the route of a request for operators, "POST /orders/{id}" for instance. The pattern is in the form of
// [http.ServeMux]. The label is "" if no pattern is known: the path is a client's. So is a method that is not one of the
// standard, of which the label has nothing.
func Label(method, pattern string) string {
	label := MethodPattern(method, pattern)
	return strings.ToValidUTF8(label[:min(len(label), maxLabel)], "")
}

// MethodPattern returns the pattern with a method, if it has none and the method is one of the standard: another one is a client's.
func MethodPattern(method, pattern string) string {
	if pattern == "" || strings.ContainsAny(pattern, " \t") || !slices.Contains(methods, method) {
		return pattern
	}
	return method + " " + pattern
}

// maxLabel is the most that [core.WithLabel] allows.
const maxLabel = 256

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodConnect,
	http.MethodOptions, http.MethodTrace,
}

// failureOf returns why a run failed whose handler has returned: because of the status of its answer, or because there is none. It
// returns nil for other runs, and for a handler that leaves the answer to something around the guard.
func failureOf(status int, answered, reportedErrors bool) error {
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
