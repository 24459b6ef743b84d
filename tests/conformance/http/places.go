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
	"ValueElsewhereIsRefused":   testElsewhere,
	"NoValueRunsUnguarded":      testNoValue,
	"SpellingsOfCookiesAreOne":  testCookieSpellings,
}

// the parts of a multipart form with boundary b.
const (
	multiType = "multipart/form-data; boundary=b"
	voucher   = "--b\r\nContent-Disposition: form-data; name=\"voucher\"\r\n\r\nV42\r\n--b--\r\n"
	other     = "--b\r\nContent-Disposition: form-data; name=\"other\"\r\n\r\nV42\r\n--b--\r\n"
)

const nested = `{"order":{"voucher":"n1"}}`

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

func (s *suite) byPlace(t *testing.T, h http.Handler, opts ...httplock.Option) map[Key]*site {
	sites := map[Key]*site{}
	for _, key := range []Key{ByForm, ByQuery, ByCookie, ByJSON, ByNestedForm, ByNestedJSON, ByFormOrQuery} {
		sites[key] = s.mount(t, h, must(t)(s.Once(s.locks, key, unhurried(opts)...)))
	}
	return sites
}

// echo answers with the body of the request.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, _ = io.WriteString(w, "body "+string(body))
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
		{placed{ByNestedJSON, "POST", "?voucher=V42", "application/x+json", nested, ""}, `The JSON value at "/order/voucher" is in the query too.`},
		{placed{ByNestedJSON, "POST", "?Voucher=V42", "application/x+json; a=b", nested, ""}, `The JSON value at "/order/voucher" is in the query too.`},
		{placed{ByNestedJSON, "POST", "?voucher=V42", "Application/JSON", nested, ""}, `The JSON value at "/order/voucher" is in the query too.`},
		{placed{ByNestedJSON, "POST", "?order.voucher=V42", "application/x+json", nested, ""}, `The JSON value at "/order/voucher" is in the query too.`},
		{placed{ByNestedJSON, "POST", `?order={"voucher":"V42"}`, "application/x+json", nested, ""}, `The JSON value at "/order/voucher" is in the query too.`},
		{placed{ByNestedJSON, "DELETE", "?voucher=V42", "application/json", nested, ""}, `The JSON value at "/order/voucher" is in the query too.`},
		{placed{ByForm, "POST", "", formType, `{"voucher":"V42"}&voucher=n1`, ""}, "The body is no form."},
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
	sites := s.byPlace(t, http.HandlerFunc(echo))
	for _, test := range []placed{
		{ByForm, "POST", "?page=1", formType, "voucher=V1&vouchers=n1", ""},
		{ByQuery, "POST", "?voucher=V2&vouchers=n1", formType, "other=n1", ""},
		{ByQuery, "POST", "?voucher=V3", multiType, other, ""},
		{ByQuery, "POST", "?voucher=V4", "text/plain", "voucher=n1", ""},
		{ByQuery, "POST", "?voucher=V5", formType, "", ""},
		{ByCookie, "POST", "?voucher=n1", "", "", "session=a; voucher=V6"},
		{ByJSON, "POST", "?page=1", "application/json", `{"voucher":"V7"}`, ""},
		{ByNestedJSON, "POST", "?voucher=n1", "application/json; charset=utf-8", nested, ""},
		{ByNestedJSON, "POST", "?orders=n1", "application/x+json", strings.Replace(nested, "n1", "n2", 1), ""},
		{ByFormOrQuery, "POST", "", formType, "voucher=V8", ""},
		{ByFormOrQuery, "POST", "?voucher=V9", "", "", ""},
		{ByFormOrQuery, "POST", "?voucher=V10", formType, "other=n1", ""},
	} {
		sites[test.key].do(test.request("one-place")).fresh(t, http.StatusOK, "body "+test.body)
		sites[test.key].do(test.request("one-place")).refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
	}
}

// testElsewhere: a request with the voucher V42 only where the key function does not look, but a handler may, is not one without a key.
func testElsewhere(t *testing.T, s *suite) {
	runs := &counter{}
	sites := s.byPlace(t, runs, httplock.OptionalKey())
	large := "other=" + strings.Repeat("x", 64<<10)
	for _, test := range []struct {
		placed
		detail string
	}{
		{placed{ByForm, "POST", "", formType, "Voucher=V42", ""}, "The form field voucher is in another spelling."},
		{placed{ByForm, "POST", "", formType, "voucher[]=V42", ""}, "The form field voucher is in another spelling."},
		{placed{ByForm, "POST", "?voucher=V42", formType, "other=n1", ""}, "The form field voucher is in another place."},
		{placed{ByForm, "POST", "?voucher=V42", formType, "voucher=", ""}, "The form field voucher is in another place."},
		{placed{ByForm, "DELETE", "?Voucher=V42", "", "", ""}, "The form field voucher is in another place."},
		{placed{ByForm, "POST", "", multiType, voucher, ""}, "The form field voucher is in another place."},
		{placed{ByForm, "POST", "", "application/a+x-www-form-urlencoded", "voucher=V42", ""}, "The body is no form."},
		{placed{ByForm, "POST", "?voucher=V42&%zz", formType, "other=n1", ""}, "The form field voucher is missing, and the query is malformed."},
		{placed{ByQuery, "POST", "?Voucher=V42", "", "", ""}, "The query parameter voucher is in another spelling."},
		{placed{ByQuery, "POST", "?voucher[0]=V42", "", "", ""}, "The query parameter voucher is in another spelling."},
		{placed{ByQuery, "POST", "", formType, "voucher=V42", ""}, "The query parameter voucher is in another place."},
		{placed{ByQuery, "POST", "?voucher=", multiType, voucher, ""}, "The query parameter voucher is in another place."},
		{placed{ByQuery, "POST", "", formType, large, ""}, "The query parameter voucher is missing, and the body has more than 65536 bytes."},
		{placed{ByQuery, "POST", "", formType, "%zz", ""}, "The query parameter voucher is missing, and the form is malformed."},
		{placed{ByCookie, "POST", "", "", "", "Voucher=V42"}, "The cookie voucher is in another spelling."},
		{placed{ByJSON, "POST", "", "application/json", `{"Voucher":"V42"}`, ""}, `JSON at "/voucher": an object has a name in another spelling.`},
		{placed{ByJSON, "POST", "?voucher=V42", "application/json", `{"voucher":""}`, ""}, `The JSON value at "/voucher" is in another place.`},
		{placed{ByJSON, "POST", "?voucher=V42", "", "", ""}, `The JSON value at "/voucher" is in another place.`},
		{placed{ByJSON, "POST", "", formType, "voucher=V42", ""}, `The JSON value at "/voucher" is in another place.`},
		{placed{ByJSON, "POST", "", "text/plain", `{"voucher":"V42"}`, ""}, "The Content-Type of the body is not application/json."},
		{placed{ByJSON, "POST", "", "application/json; charset", `{"voucher":"V42"}`, ""}, "The Content-Type of the body is not application/json."},
		{placed{ByForm, "POST", "", "application/json", `{"voucher":"V42"}`, ""}, "The body is no form."},
		{placed{ByForm, "POST", "", "application/xml", "<a><voucher>V42</voucher></a>", ""}, "The body is no form."},
		{placed{ByForm, "POST", "", "application/xml; a=x-www-form-urlencoded", "<a><voucher>V42</voucher></a>", ""}, "The body is no form."},
		{placed{ByForm, "POST", "", "application/json; a=x-www-form-urlencoded", `{"voucher":"V42"}`, ""}, "The body is no form."},
		{placed{ByForm, "POST", "", "application/json", nested, ""}, "The body is no form."},
		{placed{ByForm, "POST", "", formType, `{"voucher":"V42"}`, ""}, "The body is no form."},
		{placed{ByForm, "POST", "", multiType, `[{"voucher":"V42"}]` + "\r\n" + other, ""}, "The body is no form."},
		{placed{ByNestedForm, "POST", "", "application/json", nested, ""}, "The body is no form."},
		{placed{ByJSON, "POST", "", formType, `{"voucher":"V42"}`, ""}, "The Content-Type of the body is not application/json."},
		{placed{ByJSON, "POST", "", multiType, "\n" + `{"voucher":"V42"}` + "\r\n" + other, ""}, "The Content-Type of the body is not application/json."},
		{placed{ByNestedJSON, "POST", "", "application/json", `{"Order":{"voucher":"V42"}}`, ""}, `JSON at "/order/voucher": an object has a name in another spelling.`},
		{placed{ByNestedJSON, "POST", "?voucher=V42", "application/x+json", `{}`, ""}, `The JSON value at "/order/voucher" is in another place.`},
		{placed{ByNestedJSON, "POST", "?voucher=V42", "", "", ""}, `The JSON value at "/order/voucher" is in another place.`},
		{placed{ByNestedJSON, "POST", "?order[voucher]=V42", "", "", ""}, `The JSON value at "/order/voucher" is in another place.`},
		{placed{ByNestedJSON, "POST", "", formType, "order[voucher]=V42", ""}, `The JSON value at "/order/voucher" is in another place.`},
		{placed{ByNestedJSON, "POST", "", formType, "Order.voucher=V42", ""}, `The JSON value at "/order/voucher" is in another place.`},
		{placed{ByNestedJSON, "DELETE", "?voucher=V42", "application/json", "{}", ""}, `The JSON value at "/order/voucher" is in another place.`},
		{placed{ByFormOrQuery, "POST", "?Voucher=V42", formType, "other=n1", ""}, "The query parameter voucher is in another spelling."},
		{placed{ByFormOrQuery, "POST", "", multiType, voucher, ""}, "The form field voucher is in another place."},
	} {
		p := sites[test.key].do(test.request("elsewhere")).refused(t, http.StatusBadRequest, httplock.CodeKeyInvalid)
		if p.Detail != test.detail {
			t.Errorf("%+v: %s", test.placed, p.Detail)
		}
	}
	runs.ran(t, 0)
}

// testNoValue: what has no value anywhere runs unguarded, and the handler has the whole body.
func testNoValue(t *testing.T, s *suite) {
	sites := s.byPlace(t, http.HandlerFunc(echo), httplock.OptionalKey())
	for _, test := range []placed{
		{ByForm, "POST", "", "", "", ""},
		{ByForm, "POST", "?page=1", formType, "vouchers=n1", ""},
		{ByForm, "POST", "?voucher=", formType, "voucher=", ""},
		{ByForm, "POST", "?page=1", multiType, other, ""},
		{ByForm, "POST", "", "application/json", `{"vouchers":"n1"}`, ""},
		{ByForm, "POST", "", "application/json", `{"a":[{"Voucher":"","b":"voucher"}],"voucher":null}`, ""},
		{ByForm, "DELETE", "", "text/plain", "", ""},
		{ByNestedForm, "POST", "", "application/json", `{"vouchers":"n1"}`, ""},
		{ByQuery, "POST", "?page=1", formType, "vouchers=n1", ""},
		{ByQuery, "POST", "?voucher=", multiType, strings.Replace(voucher, "V42", "", 1), ""},
		{ByQuery, "POST", "", "application/json", `{"a":"` + strings.Repeat("x", 64<<10) + `"}`, ""},
		{ByCookie, "POST", "?voucher=n1", "", "", "session=a; Voucher="},
		{ByJSON, "POST", "?page=1", "application/json", `{"Voucher":null,"vouchers":"n1"}`, ""},
		{ByJSON, "POST", "", formType, "vouchers=n1", ""},
		{ByJSON, "POST", "", "text/plain", "", ""},
		{ByJSON, "DELETE", "?page=1", "", "", ""},
		{ByNestedJSON, "POST", "?voucher=n1", "application/json", `{"order":{"vouchers":"n1"}}`, ""},
		{ByFormOrQuery, "POST", "?page=1", formType, "vouchers=n1", ""},
	} {
		for range 2 {
			sites[test.key].do(test.request("no-value")).fresh(t, http.StatusOK, "body "+test.body)
		}
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
