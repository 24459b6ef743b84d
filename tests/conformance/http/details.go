package httpconformance

import (
	"net/http"
	"strings"
	"testing"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

var detailTests = tests{
	"EarlyDataHoweverWritten":  testEarlyDataSpelling,
	"ForgedRecordIsFiltered":   testForgedRecord,
	"SplittingRecordIsRefused": testSplittingRecord,
	"EncodingIsCompared":       testEncodingIsCompared,
	"JSONParametersCompared":   testJSONParameters,
}

// testEarlyDataSpelling: RFC 8470, section 5.1: several fields, or an invalid one, count as one with the value 1.
func testEarlyDataSpelling(t *testing.T, s *suite) {
	exclusive, idempotent := s.exclusive(t), s.idempotent(t)
	for i, test := range []struct {
		lines []string
		early bool
	}{
		{nil, false},
		{[]string{"0"}, false},
		{[]string{"1"}, true},
		{[]string{"2"}, true},
		{[]string{""}, true},
		{[]string{"true"}, true},
		{[]string{"?0"}, true},
		{[]string{"00"}, true},
		{[]string{"0, 0"}, true},
		{[]string{"0, 1"}, true},
		{[]string{"0", "1"}, true},
		{[]string{"1", "0"}, true},
		{[]string{"0", "0"}, true},
	} {
		for name, guard := range map[string]Guard{"exclusive": exclusive, "idempotent": idempotent} {
			want := http.StatusCreated
			if test.early {
				want = http.StatusTooEarly
			}
			r := request{user: "early-" + name, key: string(rune('a' + i)), header: http.Header{"Early-Data": test.lines}}
			if a := s.mount(t, &counter{}, guard).do(r); a.err != nil || a.status != want {
				t.Errorf("%s, %q: status %d, error %v, want %d", name, test.lines, a.status, a.err, want)
			}
		}
	}
}

// testForgedRecord: whoever can write to Redis gets no cookie, credential or field of the connection into the answer of a
// client, and none of the whole site.
func testForgedRecord(t *testing.T, s *suite) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Total", "7")
		w.WriteHeader(http.StatusCreated)
	})
	site := s.mount(t, h, s.idempotent(t))
	r := request{user: "forged", key: "k"}
	site.do(r).fresh(t, http.StatusCreated, "")
	s.forge(t, r, `"X-Total":["7"]`, `"set-cookie":["session=evil"],"Set-Cookie":["session=evil"],"Set-Cookie ":["a=b"],"X-Total":["7"],`+
		`"Www-Authenticate":["Basic"],"Authorization":["Bearer evil"],"Authentication-Info":["x"],"X-Auth-User":["evil"],`+
		`"X-Session":["evil"],"X-Admin-Session-Key":["evil"],"X-Csrf-Token":["evil"],"My-Cookie":["evil"],`+
		`"Transfer-Encoding":["chunked"],"Content-Length":["999"],"Connection":["X-Total"],"Upgrade":["h2c"],`+
		`"Keep-Alive":["timeout=9"],"Trailer":["X-Late"],"Trailer:Set-Cookie":["session=evil"],`+
		`"\u0153et-Cookie":["session=evil"],"Strict-Transport-Security":["max-age=0"],"Clear-Site-Data":["\"*\""],`+
		`"Alt-Svc":["h3=\"evil.example:443\""],"Access-Control-Allow-Origin":["https://evil.example"]`)
	a := site.do(r)
	a.replayed(t, http.StatusCreated, "")
	if a.header.Get("X-Total") != "7" {
		t.Errorf("the handler's own field is gone: %v", a.header)
	}
	allowed := map[string]bool{
		"X-Total": true, "Date": true, "Content-Length": true, "Cache-Control": true, httplock.MarkerField: true,
		"Content-Type": true,
	}
	for name, values := range a.header {
		if !allowed[name] || strings.Contains(strings.Join(values, ""), "evil") {
			t.Errorf("the client got %s: %q", name, values)
		}
	}
}

// testSplittingRecord: a record with a field that would end the header is not replayed.
func testSplittingRecord(t *testing.T, s *suite) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Total", "7")
		w.WriteHeader(http.StatusCreated)
	})
	site := s.mount(t, h, s.idempotent(t))
	for _, value := range []string{`7\r\nX-Evil: 1`, `7\nX-Evil: 1`, `7\r`, `7\u0000`, `7\u010d\u010aX-Evil: 1`} {
		r := request{user: "splitting", key: strings.NewReplacer(`\`, "", ":", "", " ", "").Replace(value)}
		site.do(r).fresh(t, http.StatusCreated, "")
		s.forge(t, r, `"X-Total":["7"]`, `"X-Total":["`+value+`"]`)
		a := site.do(r)
		a.refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
		if a.header["X-Evil"] != nil {
			t.Errorf("%s: the client got %v", value, a.header)
		}
	}
}

// forge replaces a part of the record of a request as one who can write to Redis.
func (s *suite) forge(t *testing.T, r request, part, by string) {
	t.Helper()
	rdb, name := s.redis.Client(), idempotentKey(t, r.user, r.key).Name(nil)
	all, err := rdb.Keys(t.Context(), "*"+strings.NewReplacer("[", `\[`).Replace(name)+"*").Result()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, key := range all {
		if value, _ := rdb.HGet(t.Context(), key, "value").Result(); strings.Contains(value, part) {
			found = true
			if err := rdb.HSet(t.Context(), key, "value", strings.Replace(value, part, by, 1)).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !found {
		t.Fatalf("no record among %q", all)
	}
}

// testEncodingIsCompared: bytes with another coding or another type are another request. Another spelling of the same is not.
func testEncodingIsCompared(t *testing.T, s *suite) {
	site := s.mount(t, &counter{}, s.idempotent(t))
	header := func(contentType string, coding ...string) http.Header {
		h := http.Header{"Content-Type": {contentType}}
		if len(coding) > 0 {
			h["Content-Encoding"] = coding
		}
		return h
	}
	for name, test := range map[string]struct {
		body        string
		first       http.Header
		same, other []http.Header
	}{
		"text": {
			"body", header("text/plain; charset=utf-8"),
			[]http.Header{header(`Text/Plain;Charset="UTF-8"`), header("text/plain; charset=utf-8", "identity")},
			[]http.Header{
				header("text/plain; charset=utf-16"), header("text/plain"), header("text/plain; charset=utf-8", "gzip"),
				header("text/plain; charset=utf-8; version=2"), header("text/plain; charset=utf-8; version"),
			},
		},
		"types": {
			"body",
			http.Header{"Content-Type": {"text/a", "text/b"}},
			[]http.Header{{"Content-Type": {"text/a", "text/b"}}},
			[]http.Header{{"Content-Type": {"text/a", "text/c"}}, {"Content-Type": {"text/a"}}},
		},
		"coded": {
			"a=1&b=2", header("application/x-www-form-urlencoded", "gzip, br"),
			[]http.Header{header("application/x-www-form-urlencoded", "GZIP", "br"), header("application/x-www-form-urlencoded", "gzip,br,identity")},
			[]http.Header{header("application/x-www-form-urlencoded"), header("application/x-www-form-urlencoded", "br, gzip")},
		},
		"form": {
			"a=1&b=2", header("application/x-www-form-urlencoded; charset=utf-8"),
			[]http.Header{header("application/x-www-form-urlencoded;charset=UTF-8")},
			[]http.Header{header("application/x-www-form-urlencoded; charset=latin1"), header("application/x-www-form-urlencoded; charset=utf-8", "gzip")},
		},
		"multipart": {
			"--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b--\r\n", header("multipart/form-data; boundary=b; v=1"),
			[]http.Header{header(`multipart/form-data; V=1; boundary="b"`)},
			[]http.Header{header("multipart/form-data; boundary=b; v=2"), header("multipart/form-data; boundary=b; v=1", "gzip")},
		},
	} {
		r := request{user: "encoding", key: name, body: test.body, header: test.first}
		site.do(r).want(t, http.StatusCreated)
		for _, r.header = range test.same {
			if a := site.do(r); a.err != nil || a.status != http.StatusCreated {
				t.Errorf("%s, %v: status %d, error %v, want a replay", name, r.header, a.status, a.err)
			}
		}
		for _, r.header = range test.other {
			if a := site.do(r); a.err != nil || a.status != http.StatusUnprocessableEntity {
				t.Errorf("%s, %v: status %d, error %v, want 422", name, r.header, a.status, a.err)
			}
		}
	}
	form := "--%s\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--%s--\r\n"
	for i, boundary := range []string{"one", "other"} {
		a := site.do(request{
			user: "encoding", key: "boundary", body: strings.ReplaceAll(form, "%s", boundary),
			header: header("multipart/form-data; boundary=" + boundary),
		})
		if i == 0 {
			a.want(t, http.StatusCreated)
		} else if a.header.Get(httplock.MarkerField) != "true" {
			t.Errorf("with another boundary: status %d", a.status)
		}
	}
}

// testJSONParameters: JSON is compared by its meaning, and its media type with what changes that.
func testJSONParameters(t *testing.T, s *suite) {
	site := s.mount(t, &counter{}, s.idempotent(t, httplock.WithFingerprint(httplock.CanonicalJSON)))
	send := func(contentType, coding, body string) answer {
		h := http.Header{"Content-Type": {contentType}}
		if coding != "" {
			h.Set("Content-Encoding", coding)
		}
		return site.do(request{user: "json", key: "k", body: body, header: h})
	}
	send("application/json; version=1", "", `{"a":1,"b":2}`).want(t, http.StatusCreated)
	for _, same := range []string{"application/json; Version=1", "application/json;version=1;charset=utf-8", `application/json; charset="UTF-8"; version="1"`} {
		if a := send(same, "", `{"b":2, "a":1}`); a.header.Get(httplock.MarkerField) != "true" {
			t.Errorf("%s: status %d, want a replay", same, a.status)
		}
	}
	for _, other := range []string{"application/json", "application/json; version=2", "application/json; version=1; profile=x", "application/json; version=1; charset=utf-16"} {
		if a := send(other, "", `{"a":1,"b":2}`); a.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: status %d, want 422", other, a.status)
		}
	}
	if a := send("application/json; version=1", "gzip", `{"a":1,"b":2}`); a.status != http.StatusUnprocessableEntity {
		t.Errorf("with a Content-Encoding: status %d, want 422", a.status)
	}
}
