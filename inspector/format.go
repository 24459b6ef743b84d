package inspector

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/holdfast-go/holdfast/internal/foreign"
)

// format is a form of an answer.
type format int

const (
	asHTML format = iota
	asJSON
	asEvents
)

// wanted returns the form that a request asks for: by ?format=, and otherwise by its header.
func wanted(r *http.Request) format {
	accept := r.Header.Get("Accept")
	switch r.URL.Query().Get("format") {
	case "json":
		return asJSON
	case "events":
		return asEvents
	case "html":
		return asHTML
	}
	switch {
	case strings.Contains(accept, "text/html"):
		return asHTML
	case strings.Contains(accept, "text/event-stream"):
		return asEvents
	case strings.Contains(accept, "application/json"):
		return asJSON
	}
	return asHTML
}

// writeJSON answers with a value. An error of a write means that the connection has failed.
func writeJSON(w http.ResponseWriter, status int, value any) {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		panic(err) // not with the types of this package
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(foreign.JSON(text), '\n'))
}
