package httplock

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// blankType is the type of a problem that says no more than its status, RFC 9457, section 4.2.1.
const blankType = "about:blank"

// verdict is what is fixed about a code.
type verdict struct {
	status    int
	retryable bool
	detail    string
}

var verdicts = map[string]verdict{
	CodeKeyRequired: {http.StatusBadRequest, false, "The request lacks the value of its key."},
	CodeKeyInvalid:  {http.StatusBadRequest, false, "The value of the key of the request is malformed."},
	CodeBodyUnreadable: {
		http.StatusBadRequest, true,
		"The body of the request ended before its end. The request was not processed.",
	},
	CodeBodyTimeout: {
		http.StatusRequestTimeout, true,
		"The body of the request did not arrive in time. The request was not processed.",
	},
	CodeTooManyBodies: {
		http.StatusServiceUnavailable, true,
		"The server has no memory left for the body of the request. The request was not processed. " +
			"Try again later.",
	},
	CodeScopeRequired: {http.StatusUnauthorized, false, "The request needs an authenticated user."},
	CodeLockConflict: {
		http.StatusConflict, true,
		"Another request for the same thing is being processed. This one was not. Try again later.",
	},
	CodeLimitReached: {
		http.StatusTooManyRequests, true,
		"As many requests as are allowed at the same time are being processed. This one was not. " +
			"Try again later.",
	},
	CodeClientGone: {StatusClientGone, true, "The request ended before it was processed."},
	CodeKeyFailed: {
		http.StatusInternalServerError, false,
		"The server failed to make the key of the request. The request was not processed.",
	},
	CodeGuardFailed: {
		http.StatusInternalServerError, false,
		"The server failed to guard the request. The request was not processed.",
	},
	CodeRequestInProgress: {
		http.StatusConflict, true,
		"An earlier request with the same key is still being processed. This one was not. Try again later.",
	},
	CodeAlreadyCompleted: {
		http.StatusConflict, false,
		"An earlier request with the same key took effect. This one was not processed.",
	},
	CodeOutcomeUnknown: {
		http.StatusConflict, false,
		"An earlier request with the same key may have taken effect. This one was not processed. " +
			"Find out what became of the earlier one.",
	},
	CodePayloadTooLarge: {
		http.StatusRequestEntityTooLarge, false,
		"The body of the request is larger than what is accepted here.",
	},
	CodeKeyReused: {
		http.StatusUnprocessableEntity, false,
		"The key was used before for another request. Each request needs a key of its own.",
	},
	CodeTooManyKeys: {
		http.StatusTooManyRequests, true,
		"As many keys are in use as are allowed. The request was not processed. Try again later.",
	},
	CodeTooEarly: {
		http.StatusTooEarly, true,
		"The request came in early data, which may be a repetition. Send it again after the handshake.",
	},
	CodeNotAnswered: {
		http.StatusServiceUnavailable, true,
		"The request was ended before it had an answer, and may have taken effect.",
	},
	CodeUndecided: {
		http.StatusServiceUnavailable, true,
		"The server cannot find out whether an earlier request with the same key took effect. This one was not processed. " +
			"Try again later.",
	},
	CodeLockUnavailable: {
		http.StatusServiceUnavailable, true,
		"The server cannot use its lock service. The request was not processed. Try again later.",
	},
}

// Problem is the body of an answer to a refused request, as application/problem+json of RFC 9457.
type Problem struct {
	Type       string `json:"type"`
	Title      string `json:"title"`
	Status     int    `json:"status"`
	Detail     string `json:"detail,omitempty"`
	Code       string `json:"code"`
	RetryAfter int64  `json:"retry_after,omitempty"` // seconds
	Retryable  bool   `json:"retryable"`
	Instance   string `json:"instance,omitempty"`

	location string
}

// Problem describes the conflict to a client. Nothing in it comes from the request. The text of [KeyError] says what
// the request lacks, or what is wrong with it.
func (c *Conflict) Problem() Problem {
	v := verdicts[c.Code]
	p := Problem{
		Type: blankType, Title: cmp.Or(http.StatusText(c.Status), "Request refused"), Status: c.Status, Detail: v.detail,
		Code: c.Code, RetryAfter: int64(c.RetryAfter / time.Second), Retryable: c.Retryable,
	}
	if detail := ranDetails[c.Code]; c.ran && detail != "" {
		p.Detail = detail
	}
	if told := toldOf(c.Cause); told != "" {
		p.Detail = told // which says more than the detail of the code
	}
	if c.Recorded != nil {
		p.location = c.Recorded.Header.Get("Location")
	}
	return p
}

// For returns the problem with an instance, if the answer with that header has one: the UUID that a middleware around
// the guard has put into X-Request-Id. A client and an operator can refer to the request by it.
func (p Problem) For(header http.Header) Problem {
	if id, err := uuid.Parse(header.Get("X-Request-Id")); err == nil {
		p.Instance = id.URN()
	}
	return p
}

// Body returns the problem as JSON.
func (p Problem) Body() []byte {
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // not with fields of these types
	}
	return append(body, '\n')
}

// Header returns the header fields that go with the problem.
func (p Problem) Header() http.Header {
	h := http.Header{
		"Content-Type":     {"application/problem+json"},
		"Content-Language": {"en"},
		"Cache-Control":    {"no-store"},
	}
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(p.RetryAfter, 10))
	}
	if p.location != "" {
		h.Set("Location", p.location)
	}
	return h
}

// ranDetails are the details of problems for a request that has run, where the details of a refusal would say that it has not.
var ranDetails = map[string]string{
	CodeAlreadyCompleted: "The request took effect, but it was ended before it had an answer.",
	CodeOutcomeUnknown: "The request was ended before it had an answer, and may have taken effect. " +
		"Find out what became of it.",
}

// Refuse answers a refused request with the problem of the conflict. It is the default [RefusalHandler].
func Refuse(w http.ResponseWriter, _ *http.Request, conflict *Conflict) {
	problem := conflict.Problem().For(w.Header())
	maps.Copy(w.Header(), problem.Header())
	w.WriteHeader(problem.Status)
	_, _ = w.Write(problem.Body()) // an error means that the client does not read its response
}
