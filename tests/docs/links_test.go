package docs_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What links look like, once code is gone: [text](target), [name]: target, and attributes of HTML.
var (
	inlineCode = regexp.MustCompile("`[^`]*`")
	links      = regexp.MustCompile(`\]\(([^)\s]+)[^)]*\)|^\[[^\]]+\]: (\S+)|(?:src|href|srcset)="([^"]+)"`)
	elsewhere  = regexp.MustCompile(`^[a-z]+:`)
	runbook    = regexp.MustCompile(`runbook_url: "?https://github\.com/holdfast-go/holdfast/blob/main/([^"\s]+)`)
)

// TestLinks follows every link within the repository, to files and to headings, and the links of the alerts to their runbooks.
func TestLinks(t *testing.T) {
	t.Parallel()
	all := pages(t)
	anchors := make(map[string]map[string]bool)
	for _, p := range all {
		anchors[p.Path] = p.Anchors()
	}
	check := func(from, target string) {
		file, anchor, _ := strings.Cut(target, "#")
		to := from
		if file != "" {
			to = path.Join(path.Dir(from), file)
		}
		if _, err := os.Stat(filepath.Join(root, to)); err != nil {
			t.Errorf("%s: %s: no such file", from, target)
		} else if anchor != "" && !anchors[to][anchor] {
			t.Errorf("%s: %s: no such heading", from, target)
		}
	}
	for _, p := range all {
		_, prose := p.Split()
		for _, line := range prose {
			for _, found := range links.FindAllStringSubmatch(inlineCode.ReplaceAllString(line, ""), -1) {
				if target := strings.Join(found[1:], ""); !elsewhere.MatchString(target) {
					check(p.Path, target)
				}
			}
		}
	}
	runbooks := runbook.FindAllStringSubmatch(readFile(t, "otellock/dashboards/alerts.yml"), -1)
	if len(runbooks) < 10 {
		t.Errorf("found only %d runbooks of alerts", len(runbooks))
	}
	for _, found := range runbooks {
		check("alerts.yml", found[1])
	}
}
