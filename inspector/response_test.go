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
	contains(t, s.act(http.StatusBadRequest, path, typed, "value", "x"), "a response and no value")
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

// TestResolveInventsNothing: results of RPCs and messages are encoded by their guards, so the form has no field for them, and a value
// that is sent all the same is refused.
func TestResolveInventsNothing(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	s := newSite(t, locks, inspector.WithActions(asAda))
	for _, prefix := range []string{"msg:", "rpc:"} {
		name := prefix + strings.Repeat("x", 43)
		held(t, locks, name, time.Hour)
		path := "resolve?name=" + url.QueryEscape(name)
		page := s.get(http.StatusOK, path)
		contains(t, page, "<code>Guard.Resolve</code> in Go")
		if strings.Contains(page, `name="value"`) || strings.Contains(page, `name="response"`) {
			t.Errorf("%s: the form has a field for a result", name)
		}
		_, typed, _ := strings.Cut(page, "Type <code>")
		typed, _, _ = strings.Cut(typed, "</code>")
		for _, field := range []string{"value", "response"} {
			contains(t, s.act(http.StatusBadRequest, path, typed, field, "HTTP/1.1 200 OK"), "Guard.Resolve")
		}
		s.act(http.StatusOK, path, typed)
		if r, err := locks.Once(name).Peek(t.Context()); err != nil || r.State != core.StateCompleted || len(r.Value) > 0 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}
