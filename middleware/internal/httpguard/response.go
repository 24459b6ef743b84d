package httpguard

import (
	"net/http"

	"github.com/holdfast-go/holdfast/internal/httprecord"
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

// encode returns the response as guards record it.
func (r *Response) encode() []byte {
	kept := httprecord.Response{
		Status: r.Status, Header: r.Header, Body: r.Body, Omitted: r.Omitted, Around: r.around, Unbegun: r.unbegun,
	}
	return kept.Encode()
}

// decodeResponse reads what [Response.encode] has returned.
func decodeResponse(value []byte) (*Response, error) {
	kept, err := httprecord.Decode(value)
	if err != nil {
		return nil, err
	}
	return &Response{
		Status: kept.Status, Header: kept.Header, Body: kept.Body, Omitted: kept.Omitted, around: kept.Around, unbegun: kept.Unbegun,
	}, nil
}
