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

// repositoryPath matches a path in this repository, by ./ or by its first folder.
var repositoryPath = regexp.MustCompile("`(?:\\./([\\w./-]*\\w)|((?:core|internal|middleware|cronlock|gocronlock|asynqlock|msglock|sqllock|otellock|" +
	"inspector|lockdebug|locktest|cmd|examples|tests|lab|tools|docs)/[\\w./-]*\\w))(?:/(?:\\.\\.\\.)?)?`")

// TestPaths: the files and folders of this repository that pages name exist.
func TestPaths(t *testing.T) {
	t.Parallel()
	found := 0
	for _, p := range pages(t) {
		_, prose := p.Split()
		for _, path := range repositoryPath.FindAllStringSubmatch(strings.Join(prose, "\n"), -1) {
			name := path[1] + path[2]
			if strings.HasSuffix(name, "/vX.Y.Z") { // a tag
				continue
			}
			found++
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("%s: %s: no such file", p.Path, name)
			}
		}
	}
	if found < 120 {
		t.Errorf("found only %d paths", found)
	}
}
