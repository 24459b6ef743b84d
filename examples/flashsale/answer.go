package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
)

// Codes in the body of a refusal by the shop itself; the codes of the guards are in package httplock.
const (
	codeSoldOut = "sold-out"
	codeBusy    = "busy"
	codeStale   = "stale"
)

var (
	errSoldOut    = errors.New("sold out")
	errNoOrder    = errors.New("no such order")
	errBadRequest = errors.New("malformed request")
)

// refusals map an error to the client's response. The first match counts.
var refusals = []struct {
	err    error
	status int
	code   string
}{
	{errSoldOut, http.StatusGone, codeSoldOut},
	{errNoOrder, http.StatusNotFound, "no-such-order"},
	{errBadRequest, http.StatusBadRequest, "malformed"},
	{errStale, http.StatusServiceUnavailable, codeStale},
	{core.ErrLeaseLost, http.StatusServiceUnavailable, "lock-lost"},
	{core.ErrNotAcquired, http.StatusServiceUnavailable, codeBusy},
	{core.ErrUnavailable, http.StatusServiceUnavailable, "no-redis"},
	{context.Canceled, http.StatusServiceUnavailable, "cancelled"}, // nobody reads it: the client has gone
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	status, code := http.StatusInternalServerError, "error"
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			status, code = r.status, r.code
			break
		}
	}
	if status == http.StatusInternalServerError {
		slog.Error("flashsale: request failed", "error", err)
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	reply(w, status, map[string]string{"code": code})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body) // an error here means that the client has gone
}
