package httplock_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

func letters(n int) []byte { return bytes.Repeat([]byte("x"), n) }

// write1 writes n bytes one by one.
func write1(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for range n {
			if _, err := fmt.Fprint(w, "x"); err != nil {
				panic(err)
			}
		}
	}
}

// copied has io.Copy write what the source has; a file, which has no WriteTo of its own use, among others.
func copied(n int, file bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		src := io.Reader(strings.NewReader(string(letters(n))))
		if file {
			f, err := os.CreateTemp("", "")
			if err != nil {
				panic(err)
			}
			defer os.Remove(f.Name())
			defer f.Close()
			_, _ = f.Write(letters(n))
			_, _ = f.Seek(0, io.SeekStart)
			src = f
		}
		if got, err := io.Copy(w, src); got != int64(n) || err != nil {
			panic(fmt.Sprint(got, err))
		}
	}
}

// declared writes n bytes, of which the header says there are as many as length.
func declared(length string, n int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", length)
		_, _ = w.Write(letters(n))
	}
}

func whole(n int) httplock.Response {
	return httplock.Response{Status: 200, Header: media(textPlain), Body: letters(n)}
}

func omitted() httplock.Response {
	return httplock.Response{Status: 200, Header: media(textPlain), Omitted: true}
}

// sized are bodies of all sizes. Between 512 and 2048 bytes, what net/http copies from a file gets no
// Content-Length from it but would get one from a capture; so there are none of these.
func sized() []handled {
	return []handled{
		{name: "one by one", handler: write1(2000), record: whole(2000)},
		{name: "exactly the limit", handler: write1(heldBack), record: whole(heldBack)},
		{name: "one more", handler: write1(heldBack + 1), record: omitted()},
		{name: "large", handler: write1(10 * heldBack), record: omitted()},
		{name: "large at once", handler: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(letters(10 * heldBack))
		}, record: omitted()},
		{name: "text copied", handler: copied(300, false), record: whole(300)},
		{name: "large text copied", handler: copied(10*heldBack, false), record: omitted()},
		{name: "file", handler: copied(300, true), record: whole(300)},
		{name: "file of the limit", handler: copied(heldBack, true), record: whole(heldBack)},
		{name: "file of one more", handler: copied(heldBack+1, true), record: omitted()},
		{name: "large file", handler: copied(100*heldBack, true), record: omitted()},
		{name: "large file, declared", handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(100*heldBack))
			copied(100*heldBack, true)(w, r)
		}, record: omitted()},
		{name: "declared", handler: declared("5", 5), record: whole(5)},
		{name: "large, declared", handler: declared(fmt.Sprint(2*heldBack), 2*heldBack), record: omitted()},
		{
			name: "declared too short", onlyHTTP1: true, handler: declared("5", 6),
			record: httplock.Response{Status: 200, Omitted: true},
		},
		{name: "declared too long", handler: declared("6", 5), record: omitted()},
		{name: "declared nonsense", onlyHTTP1: true, handler: declared("many", 5), record: whole(5)},
		{name: "what exceeds the length", onlyHTTP1: true, handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5")
			_, _ = w.Write(letters(5))
			if n, err := w.Write(letters(1)); n != 0 || err != http.ErrContentLength {
				panic(err)
			}
		}, record: whole(5)},
	}
}

// passed are answers that reach the client before the handler has returned.
func passed() []handled {
	return []handled{
		{name: "flush first", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			w.Header().Set("X-Late", "1")
			_, _ = io.WriteString(w, "x")
		}, record: httplock.Response{Status: 200, Header: http.Header{"Content-Type": nil}, Body: []byte("x")}},
		{name: "flush between", handler: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "%PDF")
			if err := w.(interface{ FlushError() error }).FlushError(); err != nil {
				panic(err)
			}
			_, _ = io.WriteString(w, "-1.4")
			w.WriteHeader(http.StatusTeapot)
		}, record: httplock.Response{Status: 200, Header: media(textPlain), Body: []byte("%PDF-1.4")}},
		{name: "flush, too much", handler: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(letters(10))
			w.(http.Flusher).Flush()
			_, _ = w.Write(letters(heldBack - 9))
		}, record: omitted()},
		{name: "controller flushes", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			if err := http.NewResponseController(w).Flush(); err != nil {
				panic(err)
			}
			_, _ = io.Copy(w, strings.NewReader("x"))
			_, _ = io.WriteString(w, "y")
			_, _ = io.Copy(w, io.LimitReader(strings.NewReader("z"), 1))
		}, record: httplock.Response{Status: 201, Header: http.Header{"Content-Type": nil}, Body: []byte("xyz")}},
	}
}

// trailed is a record of which the trailers are missing.
func trailed(n int) httplock.Response {
	r := whole(n)
	r.Omitted = true
	return r
}

func trailing() []handled {
	trailers := func(n int, flush bool) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum, X-Count")
			w.Header().Set("X-Count", "early")
			_, _ = w.Write(letters(n))
			if flush {
				w.(http.Flusher).Flush()
			}
			w.Header().Set("X-Sum", "7")
			w.Header().Set("X-Count", "8")
			w.Header().Set(http.TrailerPrefix+"X-Undeclared", "9")
		}
	}
	return []handled{
		{name: "trailers", handler: trailers(10, false), record: trailed(10)},
		{name: "trailers, flushed", handler: trailers(10, true), record: trailed(10)},
		{name: "trailers, large", handler: trailers(heldBack+1, false), record: omitted()},
		{name: "trailer taken back", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			w.Header().Set("X-Sum", "7")
			_, _ = w.Write(letters(10))
			w.Header().Del("X-Sum")
		}, record: whole(10)},
		{name: "undeclared trailer", handler: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(letters(heldBack))
			w.Header().Set(http.TrailerPrefix+"X-Sum", "7")
		}, record: trailed(heldBack)},
		{name: "undeclared trailer, small", handler: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(letters(10))
			w.Header().Set(http.TrailerPrefix+"X-Sum", "7")
		}, record: trailed(10)},
	}
}
