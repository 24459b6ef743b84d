package jsonfield_test

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/internal/jsonfield"
)

// TestFindStrings: an empty string is a value. U+FFFD is a character like any other, but not in place of half a surrogate pair.
func TestFindStrings(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		`{"a":""}`: "string:", `{"a":"\ufffd"}`: "string:\ufffd", "{\"a\":\"\ufffd\"}": "string:\ufffd",
		`{"b":"\ud800","a":"x"}`: "string:x", `{"a":"\ud83d\ude00"}`: "string:😀", `{"a":"\\ud800"}`: "string:\\ud800",
		`{"a":null}`: "", `{"b":""}`: "", `{"a":"\ud800"}`: "", `{"a":"\udc00"}`: "", `{"a":"\ud800\ud800"}`: "", `{"a":"\ud800x"}`: "",
		`{"a":"\ud800\n"}`: "", `{"a":"\ud83d\ude00\ude00"}`: "",
	} {
		got, err := jsonfield.Find([]byte(document), "/a")
		var unusable *jsonfield.Error
		if got != want || (err == nil) != (want != "") || err != nil && !errors.As(err, &unusable) {
			t.Errorf("%s: %q, %v, want %q", document, got, err, want)
		}
	}
}

// TestHas: names count at any depth and in any case, but not as values, and not with an empty value.
func TestHas(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]bool{
		`{"a":1}`: true, `{"b":2}`: true, ` { "A" : [ ] } `: true, `{"x":{"a":{}}}`: true, `[[{"x":1,"\u0061":false}]]`: true,
		`{"a":1,"a":null}`: true, `{"a":null,"x":{"a":""},"b":0}`: true,
		`{}`: false, `{"x":"a"}`: false, `["a","b"]`: false, `"a"`: false, `{"aa":1}`: false, `{"a":null,"B":""}`: false,
		`{"x":"\"a\":1"}`: false, `{"x":1e999}`: false,
		``: true, `{"x":1}{"a":1}`: true, `{"x":1`: true,
	} {
		if got := jsonfield.Has([]byte(document), "a", "b"); got != want {
			t.Errorf("%s: %t, want %t", document, got, want)
		}
	}
}
