package httplock

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// errBodyRead says that the body of a request was read in front of its guard, which cannot compare it any more: 500,
// since that is a mistake of the program. A form that net/http has parsed is compared all the same.
var errBodyRead = errors.New("holdfast: the body was read in front of the guard: put it back into r.Body, or read it inside")

// formType is the type of the forms that net/http parses into PostForm alone.
const formType = "application/x-www-form-urlencoded"

const multipartType = "multipart/form-data"

// usedUp reports whether the body was read in front of its guard, as far as that can be seen: nothing is left of it, or it
// continues behind more than what was buffered. An empty body looks the same.
func (b *bodyBuffer) usedUp() bool {
	if len(b.begin) == 0 {
		return b.whole || b.passed || errors.Is(b.err, http.ErrBodyReadAfterClose)
	}
	return b.passed && !b.whole
}

// recall finds what a body that is used up has consisted of, for the comparison: the form that was parsed of it. The error
// is [errBodyRead] if there is none and the body was not empty.
//
// A body without Content-Length of which nothing is left passes: an empty one looks like one that was read.
func (b *bodyBuffer) recall(r *http.Request, limit int64) error {
	if b.parsed != nil { // by a guard around this one
		return nil
	}
	form, err := parsedForm(r, limit)
	switch {
	case err != nil:
		return err
	case form != nil:
		if err := b.take(int64(len(form))); err != nil {
			return err
		}
		b.parsed = form
		return nil
	case r.ContentLength > 0 && !b.replaced(r), b.passed, partByPart(r):
		return errBodyRead
	}
	return nil
}

// replaced reports whether a program in front has put the body in the place of another one, whose Content-Length the request
// still has: as a decompressor does. Then an empty body is an empty body. The field in the header is gone, or the body is one
// of a package that decompresses.
func (b *bodyBuffer) replaced(r *http.Request) bool {
	if fromServer(b.source) {
		return false
	}
	if r.Header.Get("Content-Length") == "" && r.RequestURI != "" { // of a server, which leaves the field there
		return true
	}
	t := reflect.TypeOf(b.source)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t != nil && (strings.HasPrefix(t.PkgPath(), "compress/") || strings.Contains(t.PkgPath(), "/compress/"))
}

// partByPart reports whether a program in front may have read the parts of the body by r.MultipartReader. That marks the
// request whatever it consists of, so only a multipart body that may have had a part counts.
func partByPart(r *http.Request) bool {
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return r.MultipartForm != nil && r.ContentLength != 0 && strings.HasPrefix(mediaType, "multipart/")
}

// parsedForm returns the form that net/http has parsed of the body of r, as the body of a client that sends its fields in
// the order of their names; nil if there is none. The error is [errBodyTooLarge] for a form of more than limit bytes, and
// [errBodyRead] if a file of it cannot be read.
func parsedForm(r *http.Request, limit int64) ([]byte, error) {
	mediaType, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case mediaType == formType && len(r.PostForm) > 0:
		if formSize(r.PostForm) > limit {
			return nil, errBodyTooLarge
		}
		return []byte(r.PostForm.Encode()), nil
	case mediaType != multipartType || r.MultipartForm == nil:
		return nil, nil
	case len(r.MultipartForm.Value)+len(r.MultipartForm.File) == 0:
		return nil, nil
	}
	size := formSize(r.MultipartForm.Value)
	for _, files := range r.MultipartForm.File {
		for _, file := range files {
			size += file.Size
		}
	}
	if size > limit {
		return nil, errBodyTooLarge
	}
	body, err := writeForm(r.MultipartForm, params["boundary"])
	if err != nil {
		return nil, fmt.Errorf("%w (its form cannot be read again: %w)", errBodyRead, err)
	}
	return body, nil
}

// formSize returns how many bytes of names and values there are. The body had no less.
func formSize(form url.Values) (size int64) {
	for name, values := range form {
		for _, value := range values {
			size += int64(len(name) + len(value))
		}
	}
	return size
}

// writeForm returns a multipart body of the fields and files of a form, in the order of their names.
func writeForm(form *multipart.Form, boundary string) ([]byte, error) {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	if err := w.SetBoundary(boundary); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(form.Value)) {
		for _, value := range form.Value[name] {
			_ = w.WriteField(name, value) // the buffer takes all
		}
	}
	for _, name := range slices.Sorted(maps.Keys(form.File)) {
		for _, file := range form.File[name] {
			if err := writeFile(w, file); err != nil {
				return nil, err
			}
		}
	}
	_ = w.Close()
	return body.Bytes(), nil
}

func writeFile(w *multipart.Writer, file *multipart.FileHeader) error {
	content, err := file.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	part, err := w.CreatePart(file.Header)
	if err != nil {
		return err
	}
	_, err = io.Copy(part, content)
	return err
}

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
func (b *bodyBuffer) begun(r *http.Request) bool {
	return b.whole && int64(len(b.begin)) < r.ContentLength && fromServer(b.source)
}
