package httplock

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
)

func jsonPayload(body string) Payload {
	return Payload{Method: "POST", ContentType: "application/json", Body: []byte(body)}
}

// TestCanonicalJSON: the order of names, white space and escapes do not count, and nothing else is made equal.
func TestCanonicalJSON(t *testing.T) {
	t.Parallel()
	of := func(body string) []byte { return CanonicalJSON(jsonPayload(body)) }
	for _, same := range [][]string{
		{`{"a":1,"b":[true,null,"x"]}`, " {\n\"b\" : [ true, null, \"\\u0078\" ],\t\"a\":1 }\n"},
		{`{"a":{"c":1,"d":2},"b":{}}`, `{"b":{},"a":{"d":2,"c":1}}`},
		{`"\ud83d\ude00/"`, `"😀\/"`},
		{`"\ufffd"`, "\"\ufffd\""},
	} {
		if !bytes.Equal(of(same[0]), of(same[1])) {
			t.Errorf("%s and %s differ", same[0], same[1])
		}
	}
	seen := make(map[string]string)
	for _, body := range []string{
		"", "{}", "[]", "null", "0", `""`, "false", "true", `"0"`, `"null"`, "1", "1.0", "1e0", "10", "-0", `{"a":1}`, `{"A":1}`, `{"a":"1"}`,
		`{"a":[1,2]}`, `{"a":[2,1]}`, `{"a":[[1],2]}`, `{"a":[1,[2]]}`, `[{"a":1},{"b":2}]`, `[{"a":1,"b":2}]`, `{"a":{"b":1}}`,
		`{"a":{},"b":1}`, "9007199254740993", "9007199254740992", "0.1", "0.10", "1e400", "1e401",
		`{"a":1,"a":2}`, `{"a":2,"a":1}`, `{"a":2}`, `"\ud800"`, `"\ud801"`, `"\ufffd"`, `{"\ud800":1}`, `{"a":1} {}`, `{"a":1}x`, "\xff", "\xfe",
	} {
		digest := string(of(body))
		if other, has := seen[digest]; has {
			t.Errorf("%s and %s are equal", body, other)
		}
		seen[digest] = body
	}
	query, other := jsonPayload("{}"), jsonPayload("{}")
	query.Query = "a=1"
	other.ContentType = "application/merge-patch+json"
	for _, p := range []Payload{query, other} {
		if bytes.Equal(CanonicalJSON(p), of("{}")) {
			t.Errorf("%+v is equal without query and type", p)
		}
	}
	charset := jsonPayload(" {}")
	charset.ContentType = "Application/JSON; charset=utf-8"
	if !bytes.Equal(CanonicalJSON(charset), of("{}")) {
		t.Error("the charset counts")
	}
	text := Payload{ContentType: "text/plain", Body: []byte("{}")}
	spaced := Payload{ContentType: "text/plain", Body: []byte("{ }")}
	if bytes.Equal(CanonicalJSON(text), CanonicalJSON(spaced)) {
		t.Error("what is no JSON by its type is read as JSON")
	}
}

// nested is a document of arrays or objects in each other, with a text within.
func nested(open, end string, depth, size int) string {
	return strings.Repeat(open, depth) + `"` + strings.Repeat("x", size) + `"` + strings.Repeat(end, depth)
}

// TestCanonicalJSONDepth: what is nested too deep is compared as it is.
func TestCanonicalJSONDepth(t *testing.T) {
	t.Parallel()
	for depth, want := range map[int]bool{200: true, 201: false, 9_000: false} {
		for open, end := range map[string]string{"[": "]", `{"a":`: "}"} {
			body := nested(open, end, depth, 1)
			if got := bytes.Equal(CanonicalJSON(jsonPayload(body)), CanonicalJSON(jsonPayload(" "+body))); got != want {
				t.Errorf("%d times %s: white space does not count: %v", depth, open, got)
			}
		}
	}
}

// TestCanonicalJSONMemory: a nested body costs about as much as a flat one. The test is not parallel, because it counts the
// allocations of the process.
func TestCanonicalJSONMemory(t *testing.T) {
	const size = 256 << 10
	allocated := func(body string) uint64 {
		var before, after runtime.MemStats
		p := jsonPayload(body)
		runtime.ReadMemStats(&before)
		CanonicalJSON(p)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	flat := allocated(nested("[", "]", 1, size))
	for _, depth := range []int{200, 2_000} {
		for open, end := range map[string]string{"[": "]", `{"a":`: "}", `{"b":`: `,"a":0}`} {
			if n := allocated(nested(open, end, depth, size)); n > 2*flat+1<<20 {
				t.Errorf("%d times %s: %d bytes; flat %d", depth, open, n, flat)
			}
		}
	}
}
