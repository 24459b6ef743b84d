package httplock

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// replayedField is the header field that marks a replay by the rules of Stripe and of ACP.
const replayedField = "Idempotent-Replayed"

// StripeProfile returns options with which [Idempotent] keeps the published rules of Stripe's API, for clients that were written for
// it:
//
//		httplock.Idempotent(locks, user, append(httplock.StripeProfile(), core.WithFailurePolicy(core.HoldFailures))...)
//
//	  - Only POST is guarded, and a request without Idempotency-Key runs without the guard.
//	  - The first response is replayed whether it was a success or not, with its status, 500 included, for 24 hours. A replay has
//	    Idempotent-Replayed: true.
//	  - The same key with another request gets 400 idempotency_error, and while the first request is running, 409.
//	  - Errors have Stripe's form: {"error": {"type": ..., "code": ..., "message": ...}}.
//
// The difference that counts: without the profile, a request that was answered 5xx may run again, because most services answer so
// when nothing has happened, and its client retries to succeed. By Stripe's rules it gets the 500 again, and needs a new key.
// A run that crashed, panicked or gave no response follows [core.WithFailurePolicy] with the profile too, and by default runs again.
// To charge money, pass append(httplock.StripeProfile(), core.WithFailurePolicy(core.HoldFailures))..., and refuse requests without
// [core.KeyHash] in the handler. The caller may append to the slice.
func StripeProfile() []Option {
	return []Option{
		WithMethods(http.MethodPost), OptionalKey(), core.WithRetention(24 * time.Hour), WithMarkerField(replayedField),
		WithCompletion(func(h Handled) Disposition {
			if h.Returned && !h.Failed && !h.Unanswered && h.Response.Status >= http.StatusInternalServerError {
				return Completed
			}
			return Auto
		}),
		WithRefusalHandler(func(w http.ResponseWriter, _ *http.Request, c *Conflict) {
			kind, code := "invalid_request_error", underscored(c.Code)
			switch {
			case c.Code == CodeKeyReused:
				c.Status, kind, code = http.StatusBadRequest, "idempotency_error", ""
			case c.Code == CodeRequestInProgress:
				code = "idempotency_key_in_use"
			case c.Status >= http.StatusInternalServerError:
				kind = "api_error"
			}
			writeJSON(w, c, map[string]any{"error": profileError{kind, code, messageOf(c)}})
		}),
	}
}

// ACPProfile returns options with which [Idempotent] keeps the rules of the Agentic Commerce Protocol for POST requests:
//
//		scope := httplock.Keys(httplock.ByRoute(), user) // a key belongs to an identity and an endpoint
//		httplock.Idempotent(locks, scope, append(httplock.ACPProfile(), core.WithFailurePolicy(core.HoldFailures))...)
//
//	  - The key is mandatory: without one, 400 idempotency_key_required. It has at most 255 characters.
//	  - While the first request is running, others get 409 idempotency_in_flight with Retry-After.
//	  - The same key with another request gets 422 idempotency_conflict. Bodies are compared as [CanonicalJSON].
//	  - A replay has Idempotent-Replayed: true. Records are kept for 24 hours.
//	  - Errors have the form of the protocol: {"type": "invalid_request", "code": ..., "message": ...}.
//
// Without [core.HoldFailures], a checkout that failed or crashed after a charge runs again. The caller may append to the slice.
func ACPProfile() []Option {
	return []Option{
		WithMethods(http.MethodPost), core.WithRetention(24 * time.Hour), WithMarkerField(replayedField), WithFingerprint(CanonicalJSON),
		WithRefusalHandler(func(w http.ResponseWriter, _ *http.Request, c *Conflict) {
			kind, code := "invalid_request", underscored(c.Code)
			switch {
			case c.Code == CodeKeyRequired:
				code = "idempotency_key_required"
			case c.Code == CodeRequestInProgress:
				code = "idempotency_in_flight"
			case c.Code == CodeKeyReused:
				code = "idempotency_conflict"
			case c.Status == http.StatusServiceUnavailable:
				kind = "service_unavailable"
			case c.Status >= http.StatusInternalServerError:
				kind = "processing_error"
			}
			writeJSON(w, c, profileError{kind, code, messageOf(c)})
		}),
	}
}

type profileError struct {
	Type    string `json:"type"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
}

func underscored(code string) string { return strings.ReplaceAll(code, "-", "_") }

// messageOf returns what the problem of the conflict says.
func messageOf(c *Conflict) string { return c.Problem().Detail }

func writeJSON(w http.ResponseWriter, c *Conflict, body any) {
	text, err := json.Marshal(body)
	if err != nil { // which texts do not cause
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if c.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64(c.RetryAfter/time.Second), 10))
	}
	w.WriteHeader(c.Status)
	_, _ = w.Write(text) // an error means that the client does not read its response
}
