package httpconformance

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"testing"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

var multipartTests = tests{
	"MultipartIsComparedByItsParts":     testMultipart,
	"MultipartOfOtherPartsIsRefused":    testOtherParts,
	"MultipartThatIsNoneIsComparedRaw":  testNoMultipart,
	"MultipartReachesTheHandlerAsItWas": testMultipartBody,
}

// field is a part of a form.
type field struct{ name, file, text string }

// form is a request with these fields, under a boundary of its own as client libraries choose it.
func form(t testing.TB, user string, fields ...field) request {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for _, f := range fields {
		part, err := w.CreateFormField(f.name)
		if f.file != "" {
			part, err = w.CreateFormFile(f.name, f.file)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(part, f.text)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return request{
		user: user, key: "k", body: body.String(), header: http.Header{"Content-Type": {w.FormDataContentType()}},
	}
}

// testMultipart: a client library chooses another boundary for each attempt.
func testMultipart(t *testing.T, s *suite) {
	site := s.mount(t, &counter{}, s.idempotent(t))
	for name, fields := range map[string][]field{
		"a field and a file": {{"amount", "", "7"}, {"receipt", "receipt.pdf", "%PDF\r\n--\r\n"}},
		"one name twice":     {{"item", "", "a"}, {"item", "", "b"}},
		"an empty field":     {{"note", "", ""}},
		"no field":           {},
	} {
		first := site.do(form(t, "multipart-"+name, fields...)).want(t, http.StatusCreated)
		site.do(form(t, "multipart-"+name, fields...)).replayed(t, http.StatusCreated, first.body)
	}
}

func testOtherParts(t *testing.T, s *suite) {
	runs := &counter{}
	site := s.mount(t, runs, s.idempotent(t))
	fields := []field{{"amount", "", "7"}, {"receipt", "a.pdf", "text"}}
	site.do(form(t, "parts", fields...)).fresh(t, http.StatusCreated, "1")
	for name, other := range map[string][]field{
		"a value":           {{"amount", "", "8"}, {"receipt", "a.pdf", "text"}},
		"a name":            {{"amounts", "", "7"}, {"receipt", "a.pdf", "text"}},
		"a file":            {{"amount", "", "7"}, {"receipt", "a.pdf", "texts"}},
		"a file's name":     {{"amount", "", "7"}, {"receipt", "b.pdf", "text"}},
		"no file":           {{"amount", "", "7"}, {"receipt", "", "text"}},
		"the order":         {{"receipt", "a.pdf", "text"}, {"amount", "", "7"}},
		"a part less":       {{"amount", "", "7"}},
		"a part more":       {{"amount", "", "7"}, {"receipt", "a.pdf", "text"}, {"note", "", ""}},
		"parts in one":      {{"amount", "", "7receipttext"}},
		"text of the other": {{"amount", "", "7t"}, {"receipt", "a.pdf", "ext"}},
		"none":              {},
	} {
		if a := site.do(form(t, "parts", other...)); a.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: status %d, want 422: %s", name, a.status, a.body)
		}
	}
	site.do(form(t, "parts", fields...)).replayed(t, http.StatusCreated, "1")
	runs.ran(t, 1)
}

// testNoMultipart: what is not exactly multipart may be read in another way by the handler.
func testNoMultipart(t *testing.T, s *suite) {
	site := s.mount(t, &counter{}, s.idempotent(t))
	typed := func(boundary string) http.Header {
		return http.Header{"Content-Type": {"multipart/form-data; boundary=" + boundary}}
	}
	const part = "Content-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n"
	whole := "--x\r\n" + part + "--x--\r\n"
	for name, bodies := range map[string][2]string{
		"text in front":          {"text\r\n" + whole, "test\r\n" + whole},
		"text in the first line": {"--xtext\r\n" + whole, "--xtest\r\n" + whole},
		"text behind a blank":    {"--x text\r\n" + whole, "--x test\r\n" + whole},
		"ends first":             {"--x--\r\ntext\r\n--x--", "--x--\r\ntest\r\n--x--"},
		"text behind":            {whole + "text", whole + "test"},
		"ends twice":             {whole + "--x\r\n" + part + "text\r\n--x--", whole + "--x\r\n" + part + "test\r\n--x--"},
		"cut off":                {"--x\r\n" + part + "text", "--x\r\n" + part + "test"},
		"no header":              {"--x\r\ntext\r\n--x--\r\n", "--x\r\ntest\r\n--x--\r\n"},
		"no boundary":            {"text", "test"},
		"nothing":                {"", "text"},
	} {
		r := request{user: "no-multipart-" + name, key: "k", body: bodies[0], header: typed("x")}
		first := site.do(r).want(t, http.StatusCreated)
		site.do(r).replayed(t, http.StatusCreated, first.body)
		other := r
		other.body = bodies[1]
		site.do(other).refused(t, http.StatusUnprocessableEntity, httplock.CodeKeyReused)
		r.header = typed("y")
		site.do(r).refused(t, http.StatusUnprocessableEntity, httplock.CodeKeyReused)
	}
}

func testMultipartBody(t *testing.T, s *suite) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	site := s.mount(t, h, s.idempotent(t))
	r := form(t, "multipart-body", field{"a", "a.txt", "text"})
	site.do(r).fresh(t, http.StatusOK, r.body)
}
