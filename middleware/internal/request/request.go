// Package request has what guards and the frameworks that host them do to requests of net/http, and tell each other by the contexts
// of these.
package request

import (
	"context"
	"net/http"
	"slices"
	"strings"
)

// Copy returns a shallow copy of r with that context, but with path values of its own, which copies otherwise share.
func Copy(r *http.Request, ctx context.Context) *http.Request {
	bare := *r
	bare.URL, bare.Header, bare.Trailer, bare.TransferEncoding = nil, nil, nil, nil
	bare.Form, bare.PostForm, bare.MultipartForm = nil, nil, nil
	made := bare.Clone(ctx)
	made.URL, made.Header, made.Trailer, made.TransferEncoding = r.URL, r.Header, r.Trailer, r.TransferEncoding
	made.Form, made.PostForm, made.MultipartForm = r.Form, r.PostForm, r.MultipartForm
	return made
}

// GiveBack copies to the request that came to a guard what the programs behind it have found out about their copy.
// A middleware around the guard sees the route that a mux inside has found, and net/http removes the files of a form.
func GiveBack(outer, inner *http.Request) {
	if inner.MultipartForm != nil {
		outer.MultipartForm = inner.MultipartForm
	}
	if inner.Pattern == "" || inner.Pattern == outer.Pattern {
		return
	}
	outer.Pattern = inner.Pattern
	for _, name := range wildcards(inner.Pattern) {
		if value := inner.PathValue(name); value != "" {
			outer.SetPathValue(name, value)
		}
	}
}

// wildcards returns the names in a pattern of http.ServeMux, or of a router with similar ones, such as chi's {id:[0-9]+}.
func wildcards(pattern string) (names []string) {
	for segment := range strings.SplitSeq(pattern, "/") {
		_, name, found := strings.Cut(segment, "{")
		if !found {
			continue
		}
		if end := strings.IndexAny(name, ":}"); end >= 0 {
			name = name[:end]
		}
		if name = strings.TrimSuffix(name, "..."); name != "" && name != "$" {
			names = append(names, name)
		}
	}
	return names
}

// MethodPattern returns the pattern with a method, if it has none and the method is one of the standard: another one is a client's.
func MethodPattern(method, pattern string) string {
	if pattern == "" || strings.ContainsAny(pattern, " \t") || !slices.Contains(methods, method) {
		return pattern
	}
	return method + " " + pattern
}

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodConnect,
	http.MethodOptions, http.MethodTrace,
}

// DecodedPathsKey is the key of true in the context of a request whose router matches decoded paths, in which an escaped slash ends a
// segment.
type DecodedPathsKey struct{}

// DecodedPaths reports whether the router of a request matches decoded paths.
func DecodedPaths(r *http.Request) bool {
	decoded, _ := r.Context().Value(DecodedPathsKey{}).(bool)
	return decoded
}

// TooLargeKey is the key of a func(error) bool in the context of a request, of the framework that hosts the guard: see [TooLarge].
type TooLargeKey struct{}

// TooLarge reports whether an error of the body of r is the framework's for one above a limit in front of the guard.
func TooLarge(r *http.Request, err error) bool {
	means, _ := r.Context().Value(TooLargeKey{}).(func(error) bool)
	return means != nil && err != nil && means(err)
}

// RunKey is the key of the run in the context of a handler.
type RunKey struct{}

// HandlerFailed notes that the handler of ctx has reported an error which nothing has answered: then the server's empty 200 is not
// its answer, and the failure policy decides. It does nothing outside of a run.
func HandlerFailed(ctx context.Context) {
	if run, ok := ctx.Value(RunKey{}).(interface{ HandlerFailed() }); ok {
		run.HandlerFailed()
	}
}
