// Package request has what the guards do to requests of net/http.
package request

import (
	"context"
	"net/http"
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

// GiveBack tells the request that came to a guard what the programs behind it have found out about the copy that they got.
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
