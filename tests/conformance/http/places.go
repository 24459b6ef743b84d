package httpconformance

import (
	"io"
	"net/http"
	"strings"
	"testing"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

var placeTests = tests{
	"ValueInTwoPlacesIsRefused": testTwoPlaces,
	"ValueInOnePlaceRuns":       testOnePlace,
	"SpellingsOfCookiesAreOne":  testCookieSpellings,
}

// the parts of a multipart form with boundary b.
const (
	multiType = "multipart/form-data; boundary=b"
	voucher   = "--b\r\nContent-Disposition: form-data; name=\"voucher\"\r\n\r\nV42\r\n--b--\r\n"
	other     = "--b\r\nContent-Disposition: form-data; name=\"other\"\r\n\r\nV42\r\n--b--\r\n"
)

// placed is a request with a voucher somewhere.
type placed struct {
	key                                Key
	method, query, mediaType, body, in string
}

func (p placed) request(user string) request {
	r := request{user: user, method: p.method, path: "/orders/1" + p.query, body: p.body, header: http.Header{}}
	if p.mediaType != "" {
		r.header.Set("Content-Type", p.mediaType)
	}
	if p.in != "" {
		r.header.Set("Cookie", p.in)
	}
	return r
}

func (s *suite) byPlace(t *testing.T, h http.Handler) map[Key]*site {
	sites := map[Key]*site{}
	for _, key := range []Key{ByForm, ByQuery, ByCookie, ByJSON} {
		sites[key] = s.mount(t, h, must(t)(s.Once(s.locks, key, unhurried(nil)...)))
	}
	return sites
}

// testTwoPlaces: the readers of a framework may find the voucher V42 in a second place or spelling. So a client with the key of another
// value, and a new one each time, is refused before it runs V42.
func testTwoPlaces(t *testing.T, s *suite) {
	runs := &counter{}
	sites := s.byPlace(t, runs)
	large := "other=" + strings.Repeat("x", 64<<10)
	for _, test := range []struct {
		placed
		detail string
	}{
		{placed{ByForm, "POST", "?voucher=V42", formType, "voucher=n1", ""}, "The form field voucher is in the query too."},
		{placed{ByForm, "DELETE", "?voucher=V42", formType, "voucher=n1", ""}, "The form field voucher is in the query too."},
		{placed{ByForm, "POST", "?Voucher=V42", formType, "voucher=n1", ""}, "The form field voucher is in the query too."},
		{placed{ByForm, "POST", "?voucher[0]=V42", formType, "voucher=n1", ""}, "The form field voucher is in the query too."},
		{placed{ByForm, "POST", "?voucher=V42&%zz", formType, "voucher=n1", ""}, "The query is malformed."},
		{placed{ByForm, "POST", "", formType, "voucher=n1&Voucher=V42", ""}, "The form field voucher is there 2 times."},
		{placed{ByForm, "POST", "", formType, "voucher=n1&voucher[]=V42", ""}, "The form field voucher is there 2 times."},
		{placed{ByForm, "POST", "", formType, "voucher=n1&vou[]cher=V42", ""}, "The form field voucher is there 2 times."},
		{placed{ByForm, "POST", "", formType, "voucher=n1&VOUCHER%5b0%5D=V42", ""}, "The form field voucher is there 2 times."},
		{placed{ByQuery, "POST", "?voucher=n1&voucher[]=V42", "", "", ""}, "The query parameter voucher is there 2 times."},
		{placed{ByQuery, "POST", "?voucher=n1&Voucher=V42", "", "", ""}, "The query parameter voucher is there 2 times."},
		{placed{ByQuery, "POST", "?voucher=n1", formType, "voucher=V42", ""}, "The query parameter voucher is in the form too."},
		{placed{ByQuery, "POST", "?voucher=n1", formType + "; a", "Voucher=V42", ""}, "The query parameter voucher is in the form too."},
		{placed{ByQuery, "PUT", "?voucher=n1", "application/a+x-www-form-urlencoded", "voucher=V42", ""}, "The query parameter voucher is in the form too."},
		{placed{ByQuery, "POST", "?voucher=n1", multiType, voucher, ""}, "The query parameter voucher is in the form too."},
		{placed{ByQuery, "POST", "?voucher=n1", "multipart/form-data", voucher, ""}, "The form is malformed."},
		{placed{ByQuery, "POST", "?voucher=n1", multiType, other[:60], ""}, "The form is malformed."},
		{placed{ByQuery, "POST", "?voucher=n1", formType, large, ""}, "The body has more than 65536 bytes."},
		{placed{ByCookie, "POST", "", "", "", "voucher=n1; Voucher=V42"}, "The cookie voucher is there 2 times."},
		{placed{ByCookie, "POST", "", "", "", "voucher=V42\\; voucher=n1"}, "The cookie voucher is there 2 times."},
		{placed{ByJSON, "POST", "?voucher=V42", "application/x+json", `{"voucher":"n1"}`, ""}, `The JSON value at "/voucher" is in the query too.`},
		{placed{ByJSON, "POST", "?Voucher=V42", "application/json", `{"voucher":"n1"}`, ""}, `The JSON value at "/voucher" is in the query too.`},
	} {
		p := sites[test.key].do(test.request("two-places")).refused(t, http.StatusBadRequest, httplock.CodeKeyInvalid)
		if p.Detail != test.detail {
			t.Errorf("%+v: %s", test.placed, p.Detail)
		}
	}
	runs.ran(t, 0)
}

// testOnePlace: what is in one place only runs once, and the handler has the whole body.
func testOnePlace(t *testing.T, s *suite) {
	sites := s.byPlace(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "body ")
		_, _ = io.Copy(w, r.Body)
	}))
	for _, test := range []placed{
		{ByForm, "POST", "?page=1", formType, "voucher=V1&vouchers=n1", ""},
		{ByQuery, "POST", "?voucher=V2&vouchers=n1", formType, "other=n1", ""},
		{ByQuery, "POST", "?voucher=V3", multiType, other, ""},
		{ByQuery, "POST", "?voucher=V4", "text/plain", "voucher=n1", ""},
		{ByQuery, "POST", "?voucher=V5", formType, "", ""},
		{ByCookie, "POST", "?voucher=n1", "", "", "session=a; voucher=V6"},
		{ByJSON, "POST", "?page=1", "application/json", `{"voucher":"V7"}`, ""},
	} {
		sites[test.key].do(test.request("one-place")).fresh(t, http.StatusOK, "body "+test.body)
		sites[test.key].do(test.request("one-place")).refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
	}
}

// testCookieSpellings: gin unescapes the value of a cookie, so its key is the same in any spelling.
func testCookieSpellings(t *testing.T, s *suite) {
	runs := &counter{}
	site := s.byPlace(t, runs)[ByCookie]
	send := func(cookie string) answer { return site.do(placed{key: ByCookie, in: cookie}.request("cookie")) }
	send("voucher=V42").want(t, http.StatusCreated)
	for _, cookie := range []string{"voucher=%56%34%32", "voucher=V4%32", `voucher="V42"`, "voucher= V42", "a=b; voucher=V42"} {
		send(cookie).refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
	}
	send("voucher=100%").want(t, http.StatusCreated)
	send("voucher=V43").want(t, http.StatusCreated)
	runs.ran(t, 3)
}
