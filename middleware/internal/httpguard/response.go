package httpguard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// MarkerField is the header field that marks a replay.
const MarkerField = "Idempotency-Replayed"

// omittedField tells a client that the answer had a body, of which nothing is left.
const omittedField = "Idempotency-Replay"

// Response is an answer as it is recorded and replayed.
type Response struct {
	// Status of the answer. It is 0 if the handler took over the connection before it set a status.
	Status int
	// Header are the fields that the handler added or changed: see [Difference].
	Header http.Header
	// Body is all of the body, or empty.
	Body []byte
	// Omitted says that there was a body, or may have been, which was not recorded.
	Omitted bool

	// around is how many values of a field are those of a middleware around the guard, to which the handler has added.
	around map[string]int
	// unbegun is true if the handler has at most set a status, which is sent when it has returned.
	unbegun bool
	// streamed is true if the body was sent as it was written, and nothing but the handler's return tells that it ended.
	streamed bool
}

// Replayable returns true if the response can be sent again: that of a connection that was taken over cannot.
func Replayable(r *Response) bool { return r.Status >= http.StatusOK }

// Unbegun returns true if the handler had not begun to send its answer when it returned, so that something around the guard
// may have added a body to its status.
func Unbegun(r *Response) bool { return r.unbegun }

// line is what stands before the body, in one line of JSON: so that the body is kept as it is, without base64.
type line struct {
	Status  int         `json:"status"`
	Header  http.Header `json:"header,omitempty"`
	Omitted bool        `json:"omitted,omitempty"`
	// Around came later. A version that does not know it replays all values.
	Around map[string]int `json:"around,omitempty"`
	// Unbegun came later. A version that does not know it replays an empty body.
	Unbegun bool `json:"unbegun,omitempty"`
}

// Encode returns the response as bytes for [DecodeResponse].
func (r *Response) Encode() []byte {
	head, err := json.Marshal(line{
		Status: r.Status, Header: mapTexts(r.Header, widen), Omitted: r.Omitted, Around: mapNames(r.around, widen),
		Unbegun: r.unbegun,
	})
	if err != nil {
		panic(err) // not with fields of these types
	}
	return append(append(head, '\n'), r.Body...)
}

// DecodeResponse is that of package httplock, which documents it.
func DecodeResponse(b []byte) (*Response, error) {
	head, body, found := bytes.Cut(b, []byte("\n"))
	if !found {
		return nil, errors.New("holdfast: recorded response: no line before the body")
	}
	var l line
	if err := json.Unmarshal(head, &l); err != nil {
		return nil, fmt.Errorf("holdfast: recorded response: %w", err)
	}
	if l.Status != 0 && !validStatus(l.Status) {
		return nil, fmt.Errorf("holdfast: recorded response: status %d", l.Status)
	}
	return &Response{
		Status: l.Status, Header: replayable(mapTexts(l.Header, narrow)), Body: body, Omitted: l.Omitted, around: mapNames(l.Around, narrow),
		unbegun: l.Unbegun,
	}, nil
}

// validStatus reports whether net/http would send that status rather than panic.
func validStatus(status int) bool { return status >= 100 && status <= 999 }

// mapTexts keeps a field without values, and one whose list is nil: they keep net/http from setting its own.
func mapTexts(h http.Header, convert func(string) string) http.Header {
	mapped := make(http.Header, len(h))
	for name, values := range h {
		var list []string
		for _, v := range values {
			list = append(list, convert(v))
		}
		mapped[convert(name)] = list
	}
	return mapped
}

// mapNames returns nil for nil, as most answers have it.
func mapNames(numbers map[string]int, convert func(string) string) map[string]int {
	if numbers == nil {
		return nil
	}
	mapped := make(map[string]int, len(numbers))
	for name, n := range numbers {
		mapped[convert(name)] = n
	}
	return mapped
}

// widen makes a character of each byte: header fields may hold any byte from 0x80 on, in Latin-1 for example,
// and JSON replaces those that are not UTF-8.
func widen(text string) string {
	wide := make([]rune, len(text))
	for i := range len(text) {
		wide[i] = rune(text[i])
	}
	return string(wide)
}

// narrow undoes widen.
func narrow(text string) string {
	bytes := make([]byte, 0, len(text))
	for _, r := range text {
		bytes = append(bytes, byte(r))
	}
	return string(bytes)
}
