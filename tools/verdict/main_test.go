package main

import (
	"strings"
	"testing"
)

func TestVerdict(t *testing.T) {
	t.Parallel()
	const said = `{"Action":"output","Package":"a","Test":"TestLong","Output":"    long_test.go:7: it takes minutes\n"}
{"Action":"skip","Package":"a","Test":"TestLong"}
{"Action":"skip","Package":"none"}
{"Action":"pass","Package":"a","Test":"TestGood"}
{"Action":"pass","Package":"a"}
`
	for name, test := range map[string]struct {
		events, want string
		good         bool
	}{
		"good": {said, "skipped 1: it takes minutes\nall tests passed: 1 passed, 1 skipped, 0 failed\n", true},
		"bad": {
			said + `{"Action":"fail","Package":"a","Test":"TestBad"}{"Action":"fail","Package":"a"}`,
			"skipped 1: it takes minutes\nFAILED a TestBad\nNOT all tests passed: 1 passed, 1 skipped, 1 failed\n", false,
		},
		"does not compile": {
			`{"Action":"fail","Package":"a"}`, "FAILED a\nNOT all tests passed: 0 passed, 0 skipped, 1 failed\n", false,
		},
		"nothing": {"", "NOT all tests passed: 0 passed, 0 skipped, 0 failed\n", false},
	} {
		r, err := read(strings.NewReader(test.events))
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if r.print(&out); out.String() != test.want || r.good() != test.good {
			t.Errorf("%s: %t %q", name, r.good(), out.String())
		}
	}
	if _, err := read(strings.NewReader(`{"Action"`)); err == nil {
		t.Error("half a line is no error")
	}
}
