package nethttp_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

const (
	form      = "application/x-www-form-urlencoded"
	jsonType  = "application/json"
	multiForm = "multipart/form-data; boundary=b"
)

func typed(contentType, body string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Content-Type", contentType)
		r.Body = io.NopCloser(strings.NewReader(body))
	}
}

func encoded(coding, contentType, body string) func(*http.Request) {
	return func(r *http.Request) {
		typed(contentType, body)(r)
		r.Header.Set("Content-Encoding", coding)
	}
}

func TestKeysOfTheBody(t *testing.T) {
	t.Parallel()
	byForm, byJSON := httplock.ByForm("id"), httplock.ByJSON("/id")
	seven, broken := `{"id":7}`, iotest.ErrReader(errors.New("broken"))
	for name, test := range map[string]struct {
		key  httplock.KeyFunc
		edit func(*http.Request)
		want string
		err  error
	}{
		"form":               {byForm, typed(form, "id=7"), "form:id 7", nil},
		"form with charset":  {byForm, typed("Application/X-WWW-Form-URLencoded; charset=utf-8", "id=7"), "form:id 7", nil},
		"form, identity":     {byForm, encoded("identity", form, "id=7"), "form:id 7", nil},
		"form, zipped":       {byForm, encoded("gzip", form, "id=7"), "", httplock.ErrKeyInvalid},
		"form, no field":     {byForm, typed(form, "a=7"), "", httplock.ErrKeyRequired},
		"form, field twice":  {byForm, typed(form, "id=7&id=7"), "", httplock.ErrKeyInvalid},
		"form, long value":   {byForm, typed(form, "id="+strings.Repeat("x", 256)), "", httplock.ErrKeyInvalid},
		"form, not a query":  {httplock.ByForm("cart"), typed(form, "id=7"), "", httplock.ErrKeyRequired},
		"form of multiparts": {byForm, typed(multiForm, "id=7"), "", httplock.ErrKeyRequired},
		"form, but JSON":     {byForm, typed(jsonType, "id=7"), "", httplock.ErrKeyRequired},
		"form, no type":      {byForm, typed("", "id=7"), "", httplock.ErrKeyRequired},
		"form, no body": {byForm, func(r *http.Request) {
			typed(form, "")(r)
			r.Body = nil
		}, "", httplock.ErrKeyRequired},
		"JSON":              {byJSON, typed(jsonType, seven), "json:/id number:7", nil},
		"JSON with charset": {byJSON, typed("application/JSON; charset=utf-8", `{"id":"7"}`), "json:/id string:7", nil},
		"JSON of a kind":    {byJSON, typed("application/merge-patch+json", seven), "json:/id number:7", nil},
		"JSON, zipped":      {byJSON, encoded("br", jsonType, seven), "", httplock.ErrKeyInvalid},
		"JSON, nothing":     {byJSON, typed(jsonType, `{}`), "", httplock.ErrKeyRequired},
		"JSON, object":      {byJSON, typed(jsonType, `{"id":{}}`), "", httplock.ErrKeyInvalid},
		"JSON, long value":  {byJSON, typed(jsonType, `{"id":"`+strings.Repeat("x", 249)+`"}`), "", httplock.ErrKeyInvalid},
		"JSON, malformed":   {byJSON, typed(jsonType, seven+"x"), "", httplock.ErrKeyInvalid},
		"JSON, but text":    {byJSON, typed("text/plain", seven), "", httplock.ErrKeyRequired},
		"JSON, odd type":    {byJSON, typed("application/json; charset", seven), "", httplock.ErrKeyRequired},
		"JSON, broken body": {byJSON, func(r *http.Request) {
			typed(jsonType, "")(r)
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader(seven), broken))
		}, "", httplock.ErrKeyInvalid},
		"first of both": {httplock.FirstOf(byJSON, byForm), typed(form, "id=7"), "form:id 7", nil},
		"both": {
			httplock.Keys(httplock.ByJSON("/a"), byJSON), typed(jsonType, `{"a":"x","id":7}`),
			"json:/a string:x json:/id number:7", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, err := test.key(request(test.edit))
			var want []httplock.Key
			for parts := strings.Fields(test.want); len(parts) > 0; parts = parts[2:] {
				want = append(want, must(t)(httplock.NewKey(parts[0], parts[1])))
			}
			if joined, _ := httplock.Join(want...); !key.Equal(joined) || !errors.Is(err, test.err) {
				t.Errorf("key %v, error %v, want %v of %q, %v", key, err, joined, test.want, test.err)
			}
		})
	}
}
