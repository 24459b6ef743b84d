package httpguard

import (
	"io"
	"net/http"
	"reflect"
	"strings"
)

// serverBodies are the types of the bodies that the server of net/http makes. They are not exported. If a version of Go
// renames one, the guard only learns less.
var serverBodies = map[string]bool{"body": true, "expectContinueReader": true, "http2requestBody": true}

// fromServer reports whether a body is the one that the server of net/http has made, and not one that a program in front
// has put in its place: that may have any length.
func fromServer(body io.Reader) bool {
	t := reflect.TypeOf(body)
	if t == nil || t.Kind() != reflect.Pointer {
		return false
	}
	// Newer versions of Go may have HTTP/2 in a package below.
	pkg := t.Elem().PkgPath()
	return serverBodies[t.Elem().Name()] && (pkg == "net/http" || strings.HasPrefix(pkg, "net/http/"))
}

// begun reports whether a program in front of the guard has read the beginning of the body and kept it: the server fails a
// body that is shorter than its Content-Length, so what is missing had arrived.
func (b *Body) begun(r *http.Request) bool {
	return b.whole && int64(len(b.begin)) < r.ContentLength && fromServer(b.source)
}
