package httplock

import (
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
	status        int
	retryable     bool
	title, detail string
}

var verdicts = map[string]verdict{
	CodeKeyRequired: {
		status: http.StatusBadRequest,
		title:  "Key required",
		detail: "The request lacks the value of its key.",
	},
	CodeKeyInvalid: {
		status: http.StatusBadRequest,
		title:  "Key invalid",
		detail: "The value of the key of the request is malformed.",
	},
	CodeBodyUnreadable: {
		status:    http.StatusBadRequest,
		retryable: true,
		title:     "Body unreadable",
		detail:    "The body of the request ended before its end. The request was not processed.",
	},
	CodeBodyTimeout: {
		status:    http.StatusRequestTimeout,
		retryable: true,
		title:     "Body timeout",
		detail:    "The body of the request did not arrive in time. The request was not processed.",
	},
	CodeTooManyBodies: {
		status:    http.StatusServiceUnavailable,
		retryable: true,
		title:     "Too many bodies",
		detail:    "The server has no memory left for the body of the request. The request was not processed. Try again later.",
	},
	CodeScopeRequired: {
		status: http.StatusUnauthorized,
		title:  "Principal required",
		detail: "The request needs an authenticated user.",
	},
	CodeLockConflict: {
		status:    http.StatusConflict,
		retryable: true,
		title:     "Another request is running",
		detail:    "Another request for the same thing is being processed. This one was not. Try again later.",
	},
	CodeLimitReached: {
		status:    http.StatusTooManyRequests,
		retryable: true,
		title:     "Limit reached",
		detail:    "As many requests as are allowed at the same time are being processed. This one was not. Try again later.",
	},
	CodeClientGone: {
		status:    StatusClientGone,
		retryable: true,
		title:     "Client gone",
		detail:    "The request ended before it was processed.",
	},
	CodeKeyFailed: {
		status: http.StatusInternalServerError,
		title:  "Key failed",
		detail: "The server failed to make the key of the request. The request was not processed.",
	},
	CodeGuardFailed: {
		status: http.StatusInternalServerError,
		title:  "Guard failed",
		detail: "The server failed to guard the request. The request was not processed.",
	},
	CodeRequestInProgress: {
		status:    http.StatusConflict,
		retryable: true,
		title:     "Request in progress",
		detail:    "An earlier request with the same key is still being processed. This one was not. Try again later.",
	},
	CodeAlreadyCompleted: {
		status: http.StatusConflict,
		title:  "Already completed",
		detail: "An earlier request with the same key took effect. This one was not processed.",
	},
	CodeOutcomeUnknown: {
		status: http.StatusConflict,
		title:  "Outcome unknown",
		detail: "An earlier request with the same key may have taken effect. This one was not processed. " +
			"Find out what became of the earlier one.",
	},
	CodePayloadTooLarge: {
		status: http.StatusRequestEntityTooLarge,
		title:  "Payload too large",
		detail: "The body of the request is larger than what is accepted here.",
	},
	CodeKeyReused: {
		status: http.StatusUnprocessableEntity,
		title:  "Key reused",
		detail: "The key was used before for another request. Each request needs a key of its own.",
	},
	CodeTooManyKeys: {
		status:    http.StatusTooManyRequests,
		retryable: true,
		title:     "Too many keys",
		detail:    "As many keys are in use as are allowed. The request was not processed. Try again later.",
	},
	CodeTooEarly: {
		status:    http.StatusTooEarly,
		retryable: true,
		title:     "Too early",
		detail:    "The request came in early data, which may be a repetition. Send it again after the handshake.",
	},
	CodeNotAnswered: {
		status:    http.StatusServiceUnavailable,
		retryable: true,
		title:     "Not answered",
		detail:    "The request was ended before it had an answer, and may have taken effect.",
	},
	CodeLockUnavailable: {
		status:    http.StatusServiceUnavailable,
		retryable: true,
		title:     "Lock unavailable",
		detail:    "The server cannot use its lock service. The request was not processed. Try again later.",
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
		Type: blankType, Title: v.title, Status: c.Status, Detail: v.detail,
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
	if text := http.StatusText(c.Status); text != "" {
		p.Title = text // as RFC 9457 asks of this type
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

// ranDetails are the details of problems for a request that has run, where those of a refusal would say that it has not.
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
	_, _ = w.Write(problem.Body()) // nobody is left to tell of a client that does not read its answer
}
