package inspector_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/inspector"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestForgery: a request that another site makes a browser send does nothing, whichever check it passes.
func TestForgery(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := newClient(t, server.Client())
	s := newSite(t, locks, inspector.WithActions(asAda))
	const path = "force-unlock?name=name"
	resp, _ := s.do(http.MethodGet, path, nil)
	for _, want := range []string{"HttpOnly", "SameSite=Strict"} {
		if cookie := resp.Header.Get("Set-Cookie"); !strings.Contains(cookie, want) {
			t.Errorf("the cookie is %q, want %s", cookie, want)
		}
	}
	right := s.token(path)
	for what, c := range map[string]struct {
		token  string
		header []string
	}{
		"another site":             {right, []string{"Sec-Fetch-Site", "cross-site"}},
		"another host of a domain": {right, []string{"Sec-Fetch-Site", "same-site"}},
		"an old browser":           {right, []string{"Origin", "https://evil.example"}},
		"no token":                 {"", nil},
		"a wrong token":            {"x" + right[1:], nil},
	} {
		mustLock(t, locks.Mutex("name"), core.WithOwner("holder"))
		resp, body := s.do(http.MethodPost, path, url.Values{"token": {c.token}, "confirm": {"name"}}, c.header...)
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: status %d: %s", what, resp.StatusCode, body)
		}
		if info, err := locks.Inspect(t.Context(), "name"); err != nil || info.Mode == "" {
			t.Errorf("%s: %+v, %v", what, info, err)
		}
	}
	form := s.form(path)
	form.Set("confirm", "name")
	if resp, body := s.do(http.MethodPost, path, form, "Sec-Fetch-Site", "same-origin"); resp.StatusCode != http.StatusOK {
		t.Errorf("status %d: %s", resp.StatusCode, body)
	}
}

// TestMethods: pages are read, actions are posted, and reading the page of an action changes nothing.
func TestMethods(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	s := newSite(t, locks, inspector.WithActions(asAda))
	mustLock(t, locks.Mutex("name"))
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{http.MethodPost, "", 405},
		{http.MethodDelete, "lock?name=name", 405},
		{http.MethodPut, "force-unlock?name=name", 405},
		{http.MethodGet, "force-unlock?name=name&confirm=name", 200},
		{http.MethodHead, "lock?name=name", 200},
		{http.MethodGet, "nothing", 404},
		{http.MethodGet, "lock?name=", 400},
		{http.MethodGet, "find?q=", 400},
		{http.MethodGet, "job?name=none", 404},
		{http.MethodGet, "job", 400},
		{http.MethodGet, "job?name={x}", 404},
		{http.MethodGet, "force-unlock", 400},
		{http.MethodGet, "force-unlock-holder", 400},
		{http.MethodGet, "resolve", 400},
		{http.MethodGet, "forget?name=none", 404},
		{http.MethodGet, "pause", 400},
		{http.MethodGet, "resume?name=none", 404},
		{http.MethodGet, "lock/", 404},
		{http.MethodGet, "templates/", 404},
		{http.MethodGet, "force-unlock/", 404},
	} {
		resp, body := s.do(c.method, c.path, nil)
		if resp.StatusCode != c.status {
			t.Errorf("%s %s: status %d: %s", c.method, c.path, resp.StatusCode, body)
		}
		header := resp.Header
		if header.Get("Cache-Control") != "no-store" || header.Get("X-Frame-Options") != "DENY" ||
			header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s %s: header %v", c.method, c.path, header)
		}
	}
	if info, err := locks.Inspect(t.Context(), "name"); err != nil || info.Mode == "" {
		t.Errorf("%+v, %v", info, err)
	}
}
