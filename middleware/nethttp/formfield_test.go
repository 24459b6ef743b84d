package httplock

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestFormField(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"id=7":             "7",
		"a=1&id=7&b=":      "7",
		"%69d=%37+%2B":     "7 +",
		"id=7=8":           "7=8",
		"ID=8&id=7":        invalid,
		"id[]=8&id=7":      invalid,
		"i[]d=8&id=7":      invalid,
		"id[a]=8&id=7":     invalid,
		"id.0=8&id=7":      invalid,
		"ids=8&id=7":       "7",
		"a=1&a=2&id=7":     "7",
		"":                 required,
		"a=7":              required,
		"ID=7":             invalid,
		"ID=":              required,
		"id":               required,
		"id=":              required,
		"id=7&id=7":        invalid,
		"id=&id=7":         invalid,
		"id=7&i%64=8":      invalid,
		"id=%zz":           invalid,
		"id=7&a=%":         invalid,
		"id=7;a=8":         invalid,
		`{"id":"7"}`:       invalid,
		`{"id":8}&id=7`:    invalid,
		"id=7&secret=%zz&": invalid,
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", formType)
		key, err := ByForm("id")(r)
		got := ""
		if err == nil {
			got = key.parts[0].value
		}
		wantField(t, body, got, err, want)
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error repeats it: %v", body, err)
		}
	}
}
