package httprecord

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MaxBody is the longest body that guards record, unless an option says otherwise.
const MaxBody = 256 << 10

// Read reads a response that somebody has written for a client: a status line, header fields, an empty line, and the body,
// which is everything after that. Lines may end with LF or CRLF. A status line of HTTP/2 is read too, as curl -i prints it. Date
// is left out.
//
// Read returns an error for a status that no guard replays (below 200), for a body that is longer than limit or that the status
// cannot have, for a Content-Length that differs from the body's, for a body without Content-Type, and for fields that belong to
// one connection, client or request.
func Read(from io.Reader, limit int) (*Response, error) {
	const mostHead = 64 << 10
	text, err := io.ReadAll(io.LimitReader(from, int64(limit)+mostHead+1))
	if err != nil {
		return nil, err
	}
	head, body := cutHead(text)
	r, err := readHead(head)
	if err != nil {
		return nil, err
	}
	r.Body = body
	switch length := r.Header.Get("Content-Length"); {
	case len(head) > mostHead:
		return nil, fmt.Errorf("holdfast: response: more than %d bytes before the body", mostHead)
	case len(body) > limit:
		return nil, fmt.Errorf("holdfast: response: the body has more than %d bytes, which are recorded at most", limit)
	case len(body) > 0 && (r.Status == http.StatusNoContent || r.Status == http.StatusNotModified):
		return nil, fmt.Errorf("holdfast: response: status %d has no body, but %d bytes follow the empty line", r.Status, len(body))
	case length != "" && length != strconv.Itoa(len(body)):
		return nil, fmt.Errorf("holdfast: response: Content-Length is %s, but the body has %d bytes: leave the field out", length, len(body))
	}
	delete(r.Header, "Content-Length")
	delete(r.Header, "Date")
	var refused []string
	for name := range r.Header {
		if Unrecorded(name) {
			refused = append(refused, name)
		}
	}
	if len(refused) > 0 {
		slices.Sort(refused)
		return nil, fmt.Errorf("holdfast: response: leave out %s: fields of one connection, client or request are not replayed",
			strings.Join(refused, ", "))
	}
	if len(body) > 0 && r.Header.Get("Content-Type") == "" {
		return nil, errors.New("holdfast: response: the body has no media type: add Content-Type, such as Content-Type: application/json")
	}
	return r, nil
}

// cutHead cuts the text at its first empty line, which is in none of the parts.
func cutHead(text []byte) (head, body []byte) {
	for at := 0; ; {
		end := bytes.IndexByte(text[at:], '\n')
		if end < 0 {
			return text, nil
		}
		line := bytes.TrimSuffix(text[at:at+end], []byte("\r"))
		if len(line) == 0 && at > 0 {
			return text[:at], text[at+end+1:]
		}
		at += end + 1
	}
}

var statusLineHTTP2 = regexp.MustCompile(`^HTTP/([23]) `)

// readHead reads the status line and the header.
func readHead(head []byte) (*Response, error) {
	head = statusLineHTTP2.ReplaceAll(head, []byte("HTTP/$1.0 "))
	whole := slices.Concat(bytes.TrimRight(head, "\r\n"), []byte("\r\n\r\n"))
	parsed, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(whole)), &http.Request{Method: http.MethodHead})
	if err != nil {
		return nil, fmt.Errorf("holdfast: response: a status line such as HTTP/1.1 201 Created and header fields are needed: %w", err)
	}
	_ = parsed.Body.Close()
	if parsed.StatusCode < http.StatusOK || !ValidStatus(parsed.StatusCode) {
		return nil, fmt.Errorf("holdfast: response: status %d: 200 to 999 are allowed", parsed.StatusCode)
	}
	// The header once more, because net/http has taken out of its own what it deals with itself.
	_, fields, _ := bytes.Cut(whole, []byte("\n"))
	header, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(fields))).ReadMIMEHeader()
	if err != nil {
		return nil, fmt.Errorf("holdfast: response: %w", err)
	}
	return &Response{Status: parsed.StatusCode, Header: http.Header(header)}, nil
}

// Text returns a response in the form that [Read] reads, nil without a status.
func Text(status int, header http.Header, body []byte) []byte {
	if !ValidStatus(status) {
		return nil
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	_ = header.Write(&text) // a Buffer takes everything
	text.WriteString("\r\n")
	text.Write(body)
	return text.Bytes()
}
