package httpconformance

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

var readInFrontTests = tests{
	"FormParsedInFrontIsCompared":      testParsedInFront,
	"FormIsTheSameWhereverItIsParsed":  testParsedSomewhere,
	"BodyReadInFrontIsRefused":         testReadInFront,
	"BodyPutBackIsCompared":            testPutBack,
	"EmptyBodyIsNotTakenForReadOne":    testEmptyInFront,
	"BodyReadInFrontIsNoMatterOfLocks": testReadInFrontOfLock,
}

const formType = "application/x-www-form-urlencoded"

// behind runs a server whose route is guarded, with a program in front of its router that has read in the requests.
func (s *suite) behind(t testing.TB, read func(r *http.Request), h http.Handler, guards ...Guard) *site {
	t.Helper()
	router := s.Handler(Route{Path: "/orders/{id}", Guards: guards, Handler: h})
	return s.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		read(r)
		router.ServeHTTP(w, r)
	}))
}

func readAll(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }

func parseAll(r *http.Request) { _ = r.ParseMultipartForm(1) } // files go to the disk

// paid is a request with a form of these fields. encoded is one that is no multipart form.
func paid(t testing.TB, user string, encoded bool, fields ...field) request {
	if !encoded {
		return form(t, user, fields...)
	}
	var pairs []string
	for _, f := range fields {
		pairs = append(pairs, f.name+"="+f.text)
	}
	return request{
		user: user, key: "k", body: strings.Join(pairs, "&"), header: http.Header{"Content-Type": {formType}},
	}
}

// testParsedInFront: a middleware looks for its token in the form, whose body is gone then.
func testParsedInFront(t *testing.T, s *suite) {
	amount := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.PostFormValue("amount")) })
	fields := s.behind(t, func(r *http.Request) { _ = r.PostFormValue("token") }, amount, s.idempotent(t))
	files := s.behind(t, parseAll, amount, s.idempotent(t))
	for name, test := range map[string]struct {
		site         *site
		encoded      bool
		first, other []field
	}{
		"a form":            {fields, true, []field{{"amount", "", "5"}}, []field{{"amount", "", "900"}}},
		"a field more":      {fields, true, []field{{"amount", "", "5"}}, []field{{"amount", "", "5"}, {"to", "", "eve"}}},
		"a multipart form":  {fields, false, []field{{"amount", "", "5"}}, []field{{"amount", "", "900"}}},
		"a file":            {files, false, []field{{"amount", "", "5"}, {"f", "a.txt", "a"}}, []field{{"amount", "", "5"}, {"f", "a.txt", "b"}}},
		"the name of one":   {files, false, []field{{"amount", "", "5"}, {"f", "a.txt", "a"}}, []field{{"amount", "", "5"}, {"f", "b.txt", "a"}}},
		"a file or a field": {files, false, []field{{"amount", "", "5"}, {"f", "a.txt", "a"}}, []field{{"amount", "", "5"}, {"f", "", "a"}}},
	} {
		for length, edit := range map[string]func(*request){
			"known": func(*request) {}, "unknown": func(r *request) { r.source = io.MultiReader(strings.NewReader(r.body)) },
		} {
			send := func(of []field) answer {
				r := paid(t, "parsed-"+name+length, test.encoded, of...)
				edit(&r)
				return test.site.do(r)
			}
			send(test.first).fresh(t, http.StatusOK, "5")
			send(test.first).replayed(t, http.StatusOK, "5")
			send(test.other).refused(t, http.StatusUnprocessableEntity, httplock.CodeKeyReused)
		}
	}
}

// testParsedSomewhere: of two replicas, or of two versions, only one may have the middleware that parses.
func testParsedSomewhere(t *testing.T, s *suite) {
	site := s.behind(t, func(r *http.Request) {
		if r.Header.Get("X-Parse") != "" {
			parseAll(r)
		}
	}, &counter{}, s.idempotent(t))
	for name, r := range map[string]request{
		"a form":           {body: "to=a+b&amount=5&to=%c3%a9", header: http.Header{"Content-Type": {formType + "; charset=utf-8"}}},
		"no field":         {header: http.Header{"Content-Type": {formType}}},
		"no form":          {body: "amount=5", header: http.Header{"Content-Type": {"text/plain"}}},
		"a multipart form": form(t, "", field{"amount", "", "5"}, field{"file", "a.txt", "text"}),
	} {
		r.user, r.key = "somewhere-"+name, "k"
		first := site.do(r).want(t, http.StatusCreated)
		r.header = r.header.Clone()
		r.header.Set("X-Parse", "yes")
		site.do(r).replayed(t, http.StatusCreated, first.body)
	}
}

// testReadInFront: what was read and put nowhere cannot be compared. Nothing runs, and the log says what to do.
func testReadInFront(t *testing.T, s *suite) {
	locks, journal := logged(t, s.redis.Client())
	guard := must(t)(s.Idempotent(locks, ByUser, unhurried(nil)...))
	runs := &counter{}
	for name, read := range map[string]func(*http.Request){
		"read":             readAll,
		"begun":            func(r *http.Request) { _, _ = io.ReadFull(r.Body, make([]byte, 3)) },
		"begun on demand":  func(r *http.Request) { _, _ = io.ReadFull(r.Body, make([]byte, 3)) },
		"taken away":       func(r *http.Request) { readAll(r); r.Body = http.NoBody },
		"closed":           func(r *http.Request) { _ = r.Body.Close() },
		"limited and read": func(r *http.Request) { r.Body = http.MaxBytesReader(nil, r.Body, 1<<20); readAll(r) },
		"read and parsed":  func(r *http.Request) { readAll(r); _ = r.ParseForm() },
		"part by part":     func(r *http.Request) { _, _ = r.MultipartReader(); readAll(r) },
		"files removed":    func(r *http.Request) { parseAll(r); removeFiles(r) },
	} {
		if name == "closed" && s.http2 {
			continue // its error is one of many
		}
		site := s.behind(t, read, runs, guard)
		r := form(t, "read-"+name, field{"f", "a.txt", strings.Repeat("text", 16<<10)})
		if name == "read and parsed" {
			r = paid(t, "read-"+name, true, field{"amount", "", "5"})
		}
		if name == "begun on demand" { // another type of body in net/http's server
			r.header.Set("Expect", "100-continue")
		}
		site.do(r).refused(t, http.StatusInternalServerError, httplock.CodeGuardFailed)
	}
	runs.ran(t, 0)
	log := journal.entries(t)
	if len(log) != 1 || log[0].Level != "ERROR" || !strings.Contains(log[0].Error, "read in front of the guard: put it back") {
		t.Errorf("the log says %+v", log)
	}
}

func removeFiles(r *http.Request) {
	if r.MultipartForm != nil {
		_ = r.MultipartForm.RemoveAll()
	}
}

// testPutBack: what a program has read and put back is there for the guard and for the handler.
func testPutBack(t *testing.T, s *suite) {
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	for name, edit := range map[string]func([]byte) []byte{
		"as it was": func(b []byte) []byte { return b },
		"longer":    func(b []byte) []byte { return append(b, "more"...) },
		"shorter":   func(b []byte) []byte { return b[2:] },
	} {
		site := s.behind(t, func(r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(edit(body)))
		}, echo, s.idempotent(t))
		r := request{user: "back-" + name, key: "k", body: "a=1234", header: http.Header{"Content-Type": {formType}}}
		site.do(r).fresh(t, http.StatusOK, string(edit([]byte(r.body))))
		site.do(r).replayed(t, http.StatusOK, string(edit([]byte(r.body))))
		r.body = "a=1235"
		site.do(r).refused(t, http.StatusUnprocessableEntity, httplock.CodeKeyReused)
	}
}

// testEmptyInFront: a request without a body is none whose body was read, even if it does not say so.
func testEmptyInFront(t *testing.T, s *suite) {
	for name, read := range map[string]func(*http.Request){
		"untouched": func(*http.Request) {}, "read": readAll, "parsed": parseAll,
		"by parts": func(r *http.Request) { _, _ = r.MultipartReader() },
		"no body":  func(r *http.Request) { r.Body = http.NoBody }, "nil": func(r *http.Request) { r.Body = nil },
	} {
		handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
		site := s.behind(t, read, handler, s.idempotent(t))
		for mediaType, header := range map[string]http.Header{
			"none": nil, "form": {"Content-Type": {formType}}, "json": {"Content-Type": {"application/json"}},
		} {
			r := request{user: "empty-" + name + mediaType, key: "k", header: header}
			site.do(r).want(t, http.StatusNoContent)
			r.source = io.MultiReader(strings.NewReader(""))
			site.do(r).replayed(t, http.StatusNoContent, "")
		}
	}
}

// testReadInFrontOfLock: guards that compare nothing need no body.
func testReadInFrontOfLock(t *testing.T, s *suite) {
	for name, guard := range map[string]Guard{"exclusive": s.exclusive(t), "once": s.once(t)} {
		site := s.behind(t, readAll, &counter{}, guard)
		site.do(request{user: "read-" + name, key: "k", body: "text"}).fresh(t, http.StatusCreated, "1")
	}
}
