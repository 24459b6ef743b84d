package fiberlock

import (
	"bufio"
	"net"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v3"

	"github.com/holdfast-go/holdfast/internal/httprecord"
)

// answer is the guard's writer. What a handler has answered is in fiber's response already: taken. Anything else is the guard's, and
// gets there by send.
type answer struct {
	header http.Header
	status int
	body   []byte
	taken  bool
}

func newAnswer(c fiber.Ctx) *answer {
	a := &answer{header: http.Header{}}
	readHeader(a.header, c)
	if a.header["Content-Type"] == nil {
		delete(a.header, "Content-Type")
	}
	return a
}

// readHeader makes header a copy of the response's header, with the Content-Type that fasthttp is going to send.
func readHeader(header http.Header, c fiber.Ctx) {
	clear(header)
	r, none := c.Response(), c.App().Config().DisableDefaultContentType
	r.Header.SetNoDefaultContentType(true) // so that only one of a handler is there
	for name, value := range r.Header.All() {
		switch key := http.CanonicalHeaderKey(string(name)); key {
		case "Content-Length", "Transfer-Encoding", "Connection", "Date", "Server":
		default:
			header[key] = append(header[key], string(value))
		}
	}
	r.Header.SetNoDefaultContentType(none)
	switch _, known := header["Content-Type"]; {
	case known:
	case none, !r.IsBodyStream() && len(r.Body()) == 0:
		header["Content-Type"] = nil // so that none is guessed
	default:
		header["Content-Type"] = []string{string(r.Header.ContentType())}
	}
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		a.status = status
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if !a.taken {
		a.body = append(a.body, p...)
	}
	return len(p), nil
}

func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, nil }

// send makes it the response of fiber.
func (a *answer) send(c fiber.Ctx) {
	if a.status == 0 || a.taken {
		return
	}
	r := c.Response()
	var names []string
	for name := range r.Header.All() {
		names = append(names, string(name))
	}
	for _, name := range names {
		if !strings.EqualFold(name, "Connection") {
			r.Header.Del(name)
		}
	}
	r.ResetBody()
	r.SetStatusCode(a.status)
	for name, values := range a.header {
		if !httprecord.FieldName.MatchString(name) { // net/http would not send it
			continue
		}
		for _, value := range values {
			r.Header.Add(name, httprecord.FieldValue(value)) // fasthttp would send a line break as it is
		}
	}
	if len(a.header["Content-Type"]) == 0 {
		r.Header.SetNoDefaultContentType(true)
	}
	r.SetBody(a.body)
}
