package httprecord_test

import (
	"bytes"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/httprecord"
)

func TestResponseRoundTrip(t *testing.T) {
	t.Parallel()
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	value := strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(string(every))
	for name, r := range map[string]httprecord.Response{
		"empty":    {Status: 204, Header: http.Header{}},
		"hijacked": {Header: http.Header{}, Omitted: true},
		"body": {
			Status: 201, Header: http.Header{"Location": {"/7"}, "Link": {"</a>", "</b>"}}, Body: []byte("{}\n\n{}"),
		},
		"bytes":   {Status: 200, Header: http.Header{"X-Bytes": {value}, "X-Empty": {""}}, Body: every},
		"no list": {Status: 200, Header: http.Header{"Content-Type": nil}, Body: []byte("x")},
		"omitted": {Status: 999, Header: http.Header{"Etag": {`"ü"`}}, Omitted: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := r.Encode()
			got, err := httprecord.Decode(b)
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != r.Status || !reflect.DeepEqual(got.Header, r.Header) || got.Omitted != r.Omitted ||
				!bytes.Equal(got.Body, r.Body) {
				t.Errorf("got %+v from %q, want %+v", got, b, r)
			}
		})
	}
}

// TestFieldValueIsOneLine: a value that a handler has set does not end its field in a server that sends it as it is.
func TestFieldValueIsOneLine(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"a\r\nSet-Cookie: b\x00": "a  Set-Cookie: b ", "\u00e9\n": "\u00e9 "} {
		r := httprecord.Response{Status: 200, Header: http.Header{"X-Note": {value}}}
		got, err := httprecord.Decode(r.Encode())
		if err != nil || !slices.Equal(got.Header["X-Note"], []string{want}) {
			t.Errorf("%+v, %v, want %q", got, err, want)
		}
	}
}

func TestResponseIsCompact(t *testing.T) {
	t.Parallel()
	r := httprecord.Response{Status: 200, Body: bytes.Repeat([]byte{0xff}, 1000)}
	if got := len(r.Encode()); got > 1050 {
		t.Errorf("%d bytes for a body of 1000", got)
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "{}", `{"status":200}`, "\n", "null", "{\n", "7\n", `{"status":99}` + "\n", `{"status":1000}` + "\n",
		`{"status":-1}` + "\n", `{"status":"200"}` + "\n", `{"status":200,"header":[]}` + "\n",
		`{"status":200,"header":{"A":["b","c\r"]}}` + "\n", `{"status":200,"header":{"A":["\nb"]}}` + "\n",
		`{"status":200,"header":{"A":["\u0000"]}}` + "\n", `{"status":200,"header":{"A":["\u00e9\r\n"]}}` + "\n",
		`{"status":200,"header":{"A":["\u010d\u010a"]}}` + "\n", // as bytes: CR LF
	} {
		r, err := httprecord.Decode([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), "holdfast: ") {
			t.Errorf("%q: %+v, error %v", text, r, err)
		}
	}
	if _, err := httprecord.Decode([]byte(`{"status":200,"later":true}` + "\n")); err != nil {
		t.Errorf("a field of a later version: %v", err)
	}
}

func TestUnrecorded(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Api-Key", "X-Api-Key", "X-Goog-Api-Key", "X-Private-Key", "X-Access-Key", "X-Magic-Link", "X-Otp", "X-Totp", "Bearer", "X-Bearer",
		"Dpop-Nonce", "Replay-Nonce", "X-Nonce", "X-Wp-Nonce", "X-Passcode", "Phpsessid", "Jsessionid", "X-Firebase-Appcheck",
		"Set-Cookie", "X-Session-Id", "X-Refresh-Token", "Traceparent", "Strict-Transport-Security",
	} {
		if !httprecord.Unrecorded(name) {
			t.Errorf("%s is recorded", name)
		}
	}
	for _, name := range []string{
		"Content-Type", "Location", "Etag", "Link", "X-Key", "Idempotency-Key", "X-Announce", "X-Author", "X-Monkey", "X-Api-Key-Count",
		"X-Laptop", "X-Api-Version", "Content-Security-Policy",
	} {
		if httprecord.Unrecorded(name) {
			t.Errorf("%s is not recorded", name)
		}
	}
}

// FuzzDecode decodes foreign bytes. What comes out must be what goes in again.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"status":200,"header":{"A":["b","\u00ff"],"C":null},"omitted":true}` + "\nbody"))
	f.Add([]byte("{\"status\":0}\n"))
	f.Add([]byte("null\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := httprecord.Decode(b)
		if err != nil {
			return
		}
		again, err := httprecord.Decode(r.Encode())
		if err != nil || !reflect.DeepEqual(r, again) {
			t.Errorf("%q: %+v, then %+v, error %v", b, r, again, err)
		}
	})
}
