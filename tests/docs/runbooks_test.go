package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// runbooks is where the addresses of alerts begin: the pages of the main branch.
const runbooks = "https://github.com/holdfast-go/holdfast/blob/main/"

// TestRunbooks: each alert of Prometheus has a runbook_url, which leads to a heading of a page, and its own section of
// docs/observability.md.
func TestRunbooks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "otellock/dashboards/alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	anchors := make(map[string]map[string]bool)
	for _, p := range pages(t) {
		anchors[p.Path] = p.Anchors()
	}
	alerts := 0
	for rule := range alertsIn(string(text)) {
		alerts++
		if mistake := checkRunbook(rule, anchors); mistake != "" {
			t.Error(mistake)
		}
	}
	if alerts < 10 {
		t.Errorf("found only %d alerts", alerts)
	}
}

// TestBrokenRunbooksAreFound shows that the check can fail.
func TestBrokenRunbooksAreFound(t *testing.T) {
	t.Parallel()
	anchors := map[string]map[string]bool{"docs/observability.md": {"a": true, "b": true}, "docs/other.md": {"c": true}}
	const two = "- alert: A\n  annotations:\n    runbook_url: %s\n- alert: B\n  annotations:\n    runbook_url: " +
		runbooks + "docs/observability.md#b\n"
	for url, good := range map[string]bool{
		runbooks + "docs/observability.md#a":   true,
		`"` + runbooks + `docs/other.md#c"`:    true,
		runbooks + "docs/observability.md#d":   false,
		runbooks + "docs/observability.md":     false,
		runbooks + "docs/none.md#a":            false,
		"https://example.com/observability#a":  false,
		"":                                     false,
		"x\n    runbook_urls: docs/other.md#c": false,
	} {
		mistakes := 0
		for rule := range alertsIn(fmt.Sprintf(two, url)) {
			if checkRunbook(rule, anchors) != "" {
				mistakes++
			}
		}
		if (mistakes == 0) != good || mistakes > 1 {
			t.Errorf("%s: %d mistakes", url, mistakes)
		}
	}
	for rule := range alertsIn("- alert: C\n  annotations:\n    runbook_url: " + runbooks + "docs/other.md#c\n") {
		if checkRunbook(rule, anchors) == "" {
			t.Error("an alert without a section is not found")
		}
	}
}

var (
	alertName  = regexp.MustCompile(`(?m)^\s*- alert: *(\w+)$`)
	runbookURL = regexp.MustCompile(`(?m)^\s*runbook_url: *"?([^"\s]+)"?$`)
)

// alertsIn yields the text of each alert in a file of rules.
func alertsIn(rules string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		starts := alertName.FindAllStringIndex(rules, -1)
		for i, start := range starts {
			end := len(rules)
			if i+1 < len(starts) {
				end = starts[i+1][0]
			}
			if !yield(rules[start[0]:end]) {
				return
			}
		}
	}
}

// checkRunbook returns what is wrong with the runbook of an alert, "" if nothing is.
func checkRunbook(rule string, anchors map[string]map[string]bool) string {
	name := alertName.FindStringSubmatch(rule)[1]
	if !anchors["docs/observability.md"][strings.ToLower(name)] {
		return name + ": docs/observability.md has no section of this name"
	}
	found := runbookURL.FindStringSubmatch(rule)
	if found == nil {
		return name + ": no runbook_url"
	}
	target, ours := strings.CutPrefix(found[1], runbooks)
	page, anchor, _ := strings.Cut(target, "#")
	if !ours || !anchors[page][anchor] {
		return fmt.Sprintf("%s: %s leads to no heading of a page", name, found[1])
	}
	return ""
}
