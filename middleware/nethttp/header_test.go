package httplock

import (
	"net/http"
	"reflect"
	"testing"
)

func TestDifference(t *testing.T) {
	t.Parallel()
	before := http.Header{
		"X-Request-Id": {"1"}, "Access-Control-Allow-Origin": {"https://a"}, "Vary": {"Origin"}, "X-Gone": {"1"},
	}
	after := http.Header{
		"X-Request-Id": {"1"}, "Vary": {"Origin", "Accept"}, "Location": {"/7"}, "Content-Type": nil, "x-raw": {"1"},

		"Set-Cookie": {"session=1"}, "Set-Cookie2": {"a=1"}, "set-cookie": {"session=2"}, "Authorization": {"x"},
		"Www-Authenticate": {"Basic"}, "WWW-Authenticate": {"Basic"}, "Authentication-Info": {"x"},
		"Proxy-Authenticate": {"Basic"}, "Proxy-Authorization": {"x"}, "Proxy-Authentication-Info": {"x"},
		"Connection": {"X-Hop, keep-alive", "x-other-hop"}, "X-Hop": {"1"}, "X-Other-Hop": {"1"},
		"Keep-Alive": {"timeout=5"}, "Proxy-Connection": {"close"}, "Te": {"trailers"}, "Upgrade": {"h2c"},
		"Transfer-Encoding": {"chunked"}, "Trailer": {"X-Sum,X-Count"}, "X-Sum": {"1"}, "X-Count": {"1"},
		"Trailer:X-Late": {"1"}, "Date": {"now"}, "Age": {"1"}, "Content-Length": {"1"}, "Retry-After": {"1"},
		"Server-Timing": {"db"}, "Traceparent": {"00"}, "Access-Control-Allow-Origin": {"https://b"},
		"Access-Control-Expose-Headers": {"*"}, "Ratelimit": {"1"}, "RateLimit-Limit": {"1"},
		"Ratelimit-Policy": {"1"}, "X-Ratelimit-Remaining": {"1"},
	}
	for _, name := range []string{
		"X-Auth-Token", "X-Access-Token", "X-Session-Token", "X-API-Key", "Refresh-Token", "X-CSRF-Token", "X-XSRF-TOKEN",
		"CSRF-Token", "x-csrf-token", "X-Correlation-ID", "Request-Id", "Tracestate", "Baggage", "B3", "X-B3-TraceId",
		"X-Amzn-Trace-Id", "X-Cloud-Trace-Context", "Uber-Trace-Id", "Sentry-Trace", "X-Datadog-Trace-Id",
	} {
		after[name] = []string{"of one"}
	}
	before["X-Request-Id"] = []string{"2"}
	want := http.Header{"Vary": {"Origin", "Accept"}, "Location": {"/7"}, "Content-Type": nil, "x-raw": {"1"}}
	got := difference(before, after)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	after["Vary"][0] = "changed"
	if got["Vary"][0] != "Origin" {
		t.Error("the difference shares its values with the header")
	}
}

func TestReplayReplaces(t *testing.T) {
	t.Parallel()
	r := &Response{Status: 200, Header: http.Header{
		"X-Request-Id": {"1"}, "Vary": {"Origin", "Accept"}, "Cache-Control": {"max-age=60"},
		"Content-Encoding": {"br"}, "Content-Digest": {"sha-256=:x:"},
	}}
	outer := func() http.Header { return http.Header{"X-Request-Id": {"2"}, "Vary": {"Origin"}, "X-Outer": {"o"}} }
	want := http.Header{
		"X-Request-Id": {"1"}, "Vary": {"Origin", "Accept"}, "X-Outer": {"o"}, "Cache-Control": {"no-store"},
		"Content-Encoding": {"br"}, "Content-Digest": {"sha-256=:x:"}, MarkerField: {"true"},
	}
	got := outer()
	replayHeader(r, got)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}

	r.Omitted = true
	delete(want, "Content-Encoding")
	delete(want, "Content-Digest")
	want["Idempotency-Replay"] = []string{"omitted"}
	got = outer()
	replayHeader(r, got)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("omitted: got %v, want %v", got, want)
	}
	if r.Header.Get("Content-Encoding") != "br" {
		t.Error("the record has changed")
	}
}

// TestTokensOfAnyNameAreNotRecorded.
func TestTokensOfAnyNameAreNotRecorded(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Token", "X-Token", "Id-Token", "X-Jwt", "X-Vault-Token", "Session", "X-Session-Id", "Cf-Ray"} {
		if diff := difference(nil, http.Header{name: {"secret"}}); len(diff) != 0 {
			t.Errorf("%s is recorded", name)
		}
	}
}

func TestReplayable(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]bool{0: false, 101: false, 200: true, 404: true} {
		if got := replayable(&Response{Status: status}); got != want {
			t.Errorf("status %d: %v, want %v", status, got, want)
		}
	}
}
