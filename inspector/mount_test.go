package inspector_test

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/inspector"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestMounts: under any path, with or without StripPrefix, all links of a page lead to pages, and its files are there.
func TestMounts(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	mustLock(t, locks.Mutex("name"))
	for base, strip := range map[string]bool{"/": false, "/debug/holdfast/": false, "/a/b/c/": true} {
		page, err := inspector.New(locks, inspector.WithActions(asAda))
		if err != nil {
			t.Fatal(err)
		}
		mux := http.NewServeMux()
		handler := http.Handler(page)
		if strip {
			handler = http.StripPrefix(strings.TrimSuffix(base, "/"), page)
		}
		mux.Handle(base, handler)
		s := serve(t, mux, page)
		follow(t, s, base)
		follow(t, s, base+"lock?name=name")
		follow(t, s, base+"find?q=name") // a redirect
		for _, folder := range []string{"lock/", "templates/"} {
			if resp, err := s.client.Get(s.URL + base + folder); err != nil || resp.StatusCode != http.StatusNotFound {
				t.Errorf("%s%s: status %v, error %v", base, folder, resp, err)
			} else {
				resp.Body.Close()
			}
		}
	}
}

// TestOtherRouters: where a router lies between a ServeMux and the page, the pattern of the mux says nothing of the page's folder.
func TestOtherRouters(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	mustLock(t, locks.Mutex("name"))
	page, err := inspector.New(locks, inspector.WithActions(asAda))
	if err != nil {
		t.Fatal(err)
	}
	router := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { page.ServeHTTP(w, r) })
	mux := http.NewServeMux()
	mux.Handle("/", router)
	mux.Handle("/tenants/{id}/lock/", router)
	mux.Handle("GET /lock/", router) // a name of a page as the folder
	s := serve(t, mux, page)
	for _, base := range []string{"/", "/debug/holdfast/", "/holdfast/", "/tenants/7/lock/", "/lock/"} {
		follow(t, s, base)
		follow(t, s, base+"lock?name=name")
	}
}

var reference = regexp.MustCompile(`(?:href|src|action)="([^"]+)"`)

// follow gets a page and all that it refers to.
func follow(t *testing.T, s *site, path string) {
	t.Helper()
	fetch := func(address string) (*http.Response, string) {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/html")
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d, error %v", address, resp.StatusCode, err)
		}
		return resp, string(body)
	}
	resp, body := fetch(s.URL + path)
	found := reference.FindAllStringSubmatch(body, -1)
	if len(found) < 8 {
		t.Fatalf("%s has %d references: %s", path, len(found), body)
	}
	for _, r := range found {
		if strings.HasPrefix(r[1], "./find") || strings.HasPrefix(r[1], "#") {
			continue
		}
		to, err := resp.Request.URL.Parse(strings.ReplaceAll(r[1], "&amp;", "&"))
		if err != nil {
			t.Fatal(err)
		}
		fetch(to.String())
	}
}

// TestAssets: files are kept by the browser, by an address that changes with them, and none has a style or a script within a page.
func TestAssets(t *testing.T) {
	t.Parallel()
	s := newSite(t, newClient(t, testkit.Start(t).Client()))
	body := s.get(http.StatusOK, "")
	address := regexp.MustCompile(`\./(script\.js\?v=[0-9a-f]+)`).FindStringSubmatch(body)
	if address == nil {
		t.Fatal(body)
	}
	for path, want := range map[string]string{address[1]: "immutable", "script.js?v=old": "no-store"} {
		if resp, _ := s.do(http.MethodGet, path, nil); !strings.Contains(resp.Header.Get("Cache-Control"), want) {
			t.Errorf("%s: %v", path, resp.Header)
		}
	}
	lacks(t, body, "<style", " style=", "<script>", " onclick")
	if n := strings.Count(body, "<script"); n != 1 {
		t.Errorf("%d scripts", n)
	}
}
