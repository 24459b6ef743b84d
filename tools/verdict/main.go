package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// event is one line of "go test -json", see go doc test2json.
type event struct {
	Action, Package, Test, Output string
}

func (e event) name() string { return strings.TrimSpace(e.Package + " " + e.Test) }

// result is what all events together say.
type result struct {
	passed  int
	skipped map[string]int // tests by reason
	failed  []string
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: verdict tests.json")
	}
	file, err := os.Open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	r, err := read(file)
	if err != nil {
		log.Fatal(err)
	}
	r.print(os.Stdout)
	if !r.good() {
		os.Exit(1)
	}
}

// reason matches what t.Skip prints: the line of the source, and the text.
var reason = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)\n$`)

func read(from io.Reader) (result, error) {
	r := result{skipped: make(map[string]int)}
	reasons := make(map[string]string)
	failedIn := make(map[string]bool) // packages in which a test has failed
	for decoder := json.NewDecoder(from); ; {
		var e event
		switch err := decoder.Decode(&e); {
		case err == io.EOF:
			return r, nil
		case err != nil:
			return r, err
		}
		switch {
		case e.Action == "output":
			if said := reason.FindStringSubmatch(e.Output); said != nil {
				reasons[e.name()] = said[1]
			}
		case e.Action == "fail" && (e.Test != "" || !failedIn[e.Package]):
			r.failed, failedIn[e.Package] = append(r.failed, e.name()), true
		case e.Action == "skip" && e.Test != "":
			r.skipped[reasons[e.name()]]++
		case e.Action == "pass" && e.Test != "":
			r.passed++
		}
	}
}

// good reports whether something was tested and nothing failed.
func (r result) good() bool { return len(r.failed) == 0 && r.passed > 0 }

func (r result) print(to io.Writer) {
	skipped := 0
	for _, why := range slices.Sorted(maps.Keys(r.skipped)) {
		skipped += r.skipped[why]
		fmt.Fprintf(to, "skipped %d: %s\n", r.skipped[why], why)
	}
	for _, name := range r.failed {
		fmt.Fprintf(to, "FAILED %s\n", name)
	}
	verdict := "all tests passed"
	if !r.good() {
		verdict = "NOT all tests passed"
	}
	fmt.Fprintf(to, "%s: %d passed, %d skipped, %d failed\n", verdict, r.passed, skipped, len(r.failed))
}
