package httplock

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/jsonfield"
)

const (
	required = "required"
	invalid  = "invalid"
)

// wantField wants that value, or one of the errors if want is their name.
func wantField(t *testing.T, what, got string, err error, want string) {
	t.Helper()
	kind := map[string]error{required: ErrKeyRequired, invalid: ErrKeyInvalid}[want]
	if kind != nil {
		want = ""
	}
	if got != want || !errors.Is(err, kind) {
		t.Errorf("%s: %q, %v, want %q, error %v", what, got, err, want, kind)
	}
}

// field is a body and where to look in it, and the value there or the name of the error.
type field struct{ body, pointer, want string }

var fieldsThere = []field{
	{`{"id":"7"}`, "/id", "string:7"},
	{`{"id":7}`, "/id", "number:7"},
	{`{"id":7.0}`, "/id", "number:7.0"},
	{`{"id":-7e+0}`, "/id", "number:-7e+0"},
	{`{"id":123456789012345678901234567890}`, "/id", "number:123456789012345678901234567890"},
	{`{"id":true}`, "/id", "boolean:true"},
	{`{"id":false}`, "/id", "boolean:false"},
	{`{"id":"number:7"}`, "/id", "string:number:7"},
	{`{"id":"\u0061\n\"\ud83d\ude00"}`, "/id", "string:a\n\"😀"},
	{` { "a" : { "b" : [ 1 , { "c" : "x" } ] } , "d" : 0 } `, "/a/b/1/c", "string:x"},
	{`{"a":[{"a":{"id":1}}],"id":2}`, "/id", "number:2"},
	{`{"id":2,"a":{"id":1,"id":1}}`, "/id", "number:2"},
	{`[true,"x"]`, "/1", "string:x"},
	{`[0,1,2,3,4,5,6,7,8,9,10]`, "/10", "number:10"},
	{`"x"`, "", "string:x"},
	{`7`, "", "number:7"},
	{`{"":1}`, "/", "number:1"},
	{`{"":{"":1}}`, "//", "number:1"},
	{`{"a/b":1,"a~b":2,"~1":3}`, "/a~1b", "number:1"},
	{`{"a/b":1,"a~b":2,"~1":3}`, "/a~0b", "number:2"},
	{`{"a/b":1,"a~b":2,"~1":3}`, "/~01", "number:3"},
	{`{"0":1}`, "/0", "number:1"},
	{`{"x":1,"X":2,"id":3}`, "/id", "number:3"},
}

var fieldsMissing = []field{
	{`{"A":1,"a":2}`, "/b", required},
	{``, "/id", required},
	{`{}`, "/id", required},
	{`[]`, "/0", required},
	{`null`, "", required},
	{`""`, "", required},
	{`{"id":null}`, "/id", required},
	{`{"id":""}`, "/id", required},
	{`{"ID":""}`, "/id", required},
	{`{"A":{"ID":null}}`, "/a/id", required},
	{`{"id":7}`, "/id/x", required},
	{`{"id":null}`, "/id/x", required},
	{`[1]`, "/1", required},
	{`[1]`, "/-", required},
	{`[1]`, "/00", required},
	{`[1]`, "/+0", required},
	{`[1]`, "/a", required},
}

// fieldsInvalid are not a single value, or in a body that parsers read in different ways.
var fieldsInvalid = []field{
	{`{"id":{}}`, "/id", invalid},
	{`{"id":[7]}`, "/id", invalid},
	{`{}`, "", invalid},
	{`{"id":7,"id":7}`, "/id", invalid},
	{`{"id":null,"id":7}`, "/id", invalid},
	{`{"id":7,"id":null}`, "/id", invalid},
	{`{"id":7,"\u0069d":8}`, "/id", invalid},
	{`{"id":7,"ID":8}`, "/id", invalid},
	{`{"iD":7,"ID":8}`, "/id", invalid},
	{`{"ID":7}`, "/id", invalid},
	{`{"A":{"id":7}}`, "/a/id", invalid},
	{`{"ſ":7,"S":8}`, "/s", invalid},
	{`{"id":7,"x":1,"x":2}`, "/id", invalid},
	{`{"a":{"id":7},"a":1}`, "/a/id", invalid},
	{`{"a":{"id":7,"id":8}}`, "/a/id", invalid},
	{`[{"id":7,"id":8}]`, "/0/id", invalid},
	{`{"a":{"id":7},"A":{"id":8}}`, "/a/id", invalid},
	{`{"id":7} x`, "/id", invalid},
	{`{"id":7}{}`, "/id", invalid},
	{`{"id":7}]`, "/id", invalid},
	{`{"id":7,}`, "/id", invalid},
	{`{"id":7`, "/id", invalid},
	{`{"id":07}`, "/id", invalid},
	{`{"id":'7'}`, "/id", invalid},
	{`{id:7}`, "/id", invalid},
	{`id=7`, "/id", invalid},
	{` `, "/id", invalid},
	{"\ufeff" + `{"id":7}`, "/id", invalid},
	{"{\"id\":\"\xff\"}", "/id", invalid},
	{"{\"id\":7,\"x\":\"\xff\"}", "/id", invalid},
	{"{\"id\":\"a\nb\"}", "/id", invalid},
	{`{"id":"\ud800"}`, "/id", invalid},
	{`{"id":"\ud800x"}`, "/id", invalid},
}

func TestJSONField(t *testing.T) {
	t.Parallel()
	for _, test := range slices.Concat(fieldsThere, fieldsMissing, fieldsInvalid) {
		got, err := jsonFieldOf([]byte(test.body), test.pointer)
		wantField(t, test.body+" at "+test.pointer, got, err, test.want)
	}
}

func TestJSONFieldDepth(t *testing.T) {
	t.Parallel()
	nested := func(depth int) string { return strings.Repeat("[", depth) + "7" + strings.Repeat("]", depth) }
	for _, test := range []struct {
		depth               int
		onTheWay, besideIt  string
		besideInsideAnother string
	}{
		{30, "number:7", "number:8", "number:8"},
		{31, "number:7", "number:8", invalid},
		{32, "number:7", invalid, invalid},
		{33, invalid, invalid, invalid},
		{9000, invalid, invalid, invalid},
		{20000, invalid, invalid, invalid},
	} {
		for _, look := range []struct{ body, pointer, want string }{
			{nested(test.depth), strings.Repeat("/0", min(test.depth, 32)), test.onTheWay},
			{`{"x":` + nested(test.depth) + `,"id":8}`, "/id", test.besideIt},
			{`{"id":8,"x":` + nested(test.depth) + `}`, "/id", test.besideIt},
			{`{"a":{"id":8,"x":` + nested(test.depth) + `}}`, "/a/id", test.besideInsideAnother},
		} {
			got, err := jsonFieldOf([]byte(look.body), look.pointer)
			wantField(t, look.pointer, got, err, look.want)
		}
	}
}

func TestJSONFieldErrorsDoNotRepeatTheBody(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"id":"secret`, `{"id":["secret"]}`, `{"secret":1,"secret":2}`, `secret`, `{"id":"secret\ud800"}`, `{"secret":1}`,
	} {
		if _, err := jsonFieldOf([]byte(body), "/id"); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestCheckPointer(t *testing.T) {
	t.Parallel()
	for pointer, good := range map[string]bool{
		"":                       true,
		"/":                      true,
		"/a/b/0":                 true,
		"/~0/~1/~01":             true,
		strings.Repeat("/a", 32): true,
		"a":                      false,
		"a/b":                    false,
		"#/a":                    false,
		"/~":                     false,
		"/~2":                    false,
		"/a~/b":                  false,
		"/~~01":                  false,
		"/\xff":                  false,
		strings.Repeat("/a", 33): false,
	} {
		if err := jsonfield.CheckPointer(pointer); (err == nil) != good {
			t.Errorf("%q: %v", pointer, err)
		}
		_, err := jsonFieldOf([]byte(`{}`), pointer)
		if bad := !errors.Is(err, ErrKeyRequired) && !errors.Is(err, ErrKeyInvalid); bad == good {
			t.Errorf("%q: the error of the field is %v", pointer, err)
		}
	}
}
