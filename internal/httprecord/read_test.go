package httprecord_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/httprecord"
)

// TestRead: what an operator writes is what the client gets.
func TestRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]*httprecord.Response{
		"HTTP/1.1 201 Created\nLocation: /orders/7\ncontent-type: application/json\n\n{\"id\":7}\n": {
			Status: 201, Header: http.Header{"Location": {"/orders/7"}, "Content-Type": {"application/json"}}, Body: []byte("{\"id\":7}\n"),
		},
		"HTTP/2 200 \r\nDate: today\r\ncontent-length: 4\r\nVary: A\r\nVary: B\r\nContent-Type: a/b\r\n\r\na\r\n\n": {
			Status: 200, Header: http.Header{"Vary": {"A", "B"}, "Content-Type": {"a/b"}}, Body: []byte("a\r\n\n"),
		},
		"HTTP/1.0 204 No Content":                                        {Status: 204, Header: http.Header{}},
		"HTTP/1.1 200 OK\nContent-Length: 0\n":                           {Status: 200, Header: http.Header{}},
		"HTTP/1.1 404 Not Found\nContent-Type: text/plain\n\n\nbody\n\n": {Status: 404, Header: http.Header{"Content-Type": {"text/plain"}}, Body: []byte("\nbody\n\n")},
	} {
		got, err := httprecord.Read(strings.NewReader(text), 10)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if len(got.Body) == 0 {
			got.Body = nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
		if back, err := httprecord.Decode(got.Encode()); err != nil || back.Status != want.Status || string(back.Body) != string(want.Body) {
			t.Errorf("%q: recorded as %+v, %v", text, back, err)
		}
	}
}

// TestReadRefuses: the text says what to do.
func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                           "a status line such as",
		"{\"id\":7}":                                 "a status line such as",
		"201 Created\n\n":                            "a status line such as",
		"HTTP/1.1 20 Short\n\n":                      "status",
		"HTTP/1.1 101 Switching\n\n":                 "status 101",
		"HTTP/1.1 200 OK\nno field\n\nbody":          "response",
		"HTTP/1.1 200 OK\n\n12345678901":             "more than 10 bytes",
		"HTTP/1.1 204 No Content\n\nbody":            "status 204 has no body",
		"HTTP/1.1 200 OK\n\nbody":                    "add Content-Type",
		"HTTP/1.1 200 OK\nContent-Type: \n\nbody":    "add Content-Type",
		"HTTP/1.1 200 OK\nContent-Length: 3\n\nbody": "Content-Length is 3, but the body has 4",
		"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nConnection: close\nTrailer: X\n\n0\n\n":   "leave out Connection, Trailer, Transfer-Encoding",
		"HTTP/1.1 200 OK\nKeep-Alive: timeout=5\nTE: trailers\nUpgrade: h2c\nset-cookie: a=b\n": "leave out Keep-Alive, Set-Cookie, Te, Upgrade",
		"HTTP/1.1 200 OK\nX: " + strings.Repeat("x", 70<<10):                                    "before the body",
	} {
		if got, err := httprecord.Read(strings.NewReader(text), 10); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %+v, %v, want %q", text, got, err, want)
		}
	}
}

// TestText: what is written of a response is read as the same one, by [Read] and by net/http.
func TestText(t *testing.T) {
	t.Parallel()
	header := http.Header{"Location": {"/orders/7"}, "Content-Type": {"text/plain"}, "Vary": {"A", "B"}}
	text := httprecord.Text(http.StatusCreated, header, []byte("line 1\n\nline 2"))
	read, err := httprecord.Read(bytes.NewReader(text), httprecord.MaxBody)
	if err != nil || read.Status != http.StatusCreated || !reflect.DeepEqual(read.Header, header) || string(read.Body) != "line 1\n\nline 2" {
		t.Errorf("%q: %+v, %v", text, read, err)
	}
	response, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(text)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusCreated || string(body) != "line 1\n\nline 2" {
		t.Errorf("status %d, body %q, %v", response.StatusCode, body, err)
	}
	if text := httprecord.Text(0, header, nil); text != nil {
		t.Errorf("without a status: %q", text)
	}
}
