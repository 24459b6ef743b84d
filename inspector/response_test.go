package inspector_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/inspector"
	"github.com/holdfast-go/holdfast/internal/httprecord"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestResolveWithResponse: the record of an HTTP guard gets the response that its client is going to get. A browser sends the
// lines of a text with CRLF.
func TestResolveWithResponse(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	s := newSite(t, locks, inspector.WithActions(asAda))
	key, err := httplock.NewKey("order", "7")
	if err != nil {
		t.Fatal(err)
	}
	name := key.Name(nil)
	held(t, locks, name, time.Hour)
	path := "resolve?name=" + url.QueryEscape(name)
	page := s.get(http.StatusOK, path)
	contains(t, page, `name="response"`)
	if strings.Contains(page, "own functions") {
		t.Error("the form of a response says that it is recorded in another way")
	}
	_, typed, _ := strings.Cut(page, "Type <code>")
	typed, _, _ = strings.Cut(typed, "</code>")
	for response, want := range map[string]string{
		"paid": "a status line such as",
		"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n": "leave out Connection",
	} {
		contains(t, s.act(http.StatusBadRequest, path, typed, "response", response), want)
	}
	contains(t, s.act(http.StatusBadRequest, path, typed, "response", "HTTP/1.1 200 OK", "value", "x"), "one of them is recorded")
	s.act(http.StatusOK, path, typed, "response", "HTTP/1.1 201 Created\r\nLocation: /orders/7\r\nContent-Type: text/plain\r\n\r\nline 1\r\nline 2")
	r, err := locks.Once(name).Peek(t.Context())
	if err != nil || r.State != core.StateCompleted {
		t.Fatalf("%+v, %v", r, err)
	}
	answer, err := httprecord.Decode(r.Value)
	if err != nil || answer.Status != http.StatusCreated || answer.Header.Get("Location") != "/orders/7" ||
		string(answer.Body) != "line 1\nline 2" {
		t.Errorf("%+v, %v", answer, err)
	}

	held(t, locks, "other", time.Hour)
	page = s.get(http.StatusOK, "resolve?name=other")
	contains(t, page, `name="value"`)
	if strings.Contains(page, `name="response"`) {
		t.Error("a record of no HTTP guard is offered a response")
	}
	contains(t, s.act(http.StatusBadRequest, "resolve?name=other", "other", "response", "HTTP/1.1 200 OK"), "not the record of an HTTP guard")
}
