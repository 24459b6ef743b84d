package docs_test

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit/markdown"
)

// translation is what the name of a page in Chinese ends with, instead of ".md".
const translation = ".zh-CN.md"

// original returns the path of the English page for that of a page in either language.
func original(path string) string { return strings.Replace(path, translation, ".md", 1) }

// sectionMark is the line after a heading of a translated page: the digest of the English section it says the same as.
var sectionMark = regexp.MustCompile(`^<!-- english: ([0-9a-f]{8}) -->$`)

// TestTranslations: a page in Chinese has the sections, the code and the links of the English one as it is now.
func TestTranslations(t *testing.T) {
	t.Parallel()
	all := pages(t)
	found := 0
	for _, p := range all {
		name, translated := strings.CutSuffix(p.Path, translation)
		if !translated {
			continue
		}
		found++
		at := slices.IndexFunc(all, func(p markdown.Page) bool { return p.Path == name+".md" })
		if at < 0 {
			t.Errorf("%s is the translation of no page", p.Path)
			continue
		}
		for _, mistake := range outOfStep(all[at], p) {
			t.Error(mistake)
		}
	}
	if found == 0 {
		t.Error("found no translated page")
	}
}

// TestPagesOutOfStepAreFound shows that the check can fail.
func TestPagesOutOfStepAreFound(t *testing.T) {
	t.Parallel()
	english := markdown.Parse("page.md", "# Lock\n\nText [x](http.md).\n\n```go\nlock()\n```\n")
	mark := "<!-- english: " + sections(english)[0].digest() + " -->"
	good := "# 锁\n\n" + mark + "\n\n文字 [x](http.md)。\n\n```go\nlock()\n```\n"
	for text, mistakes := range map[string]int{
		good: 0,
		strings.Replace(good, mark, "<!-- english: 00000000 -->", 1): 1,
		strings.Replace(good, mark, "", 1):                           1,
		strings.Replace(good, "lock()", "unlock()", 1):               1,
		strings.Replace(good, "http.md", "cron.md", 1):               1,
		good + "\n# 更多\n":                                            1,
		"":                                                           1,
	} {
		if got := outOfStep(english, markdown.Parse("page"+translation, text)); len(got) != mistakes {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// A section is a heading and what follows it until the next one.
type section struct {
	heading string
	page    markdown.Page
}

func sections(p markdown.Page) (all []section) {
	_, prose := p.Split()
	for i, line := range p.Lines {
		if title, level := markdown.Heading(prose[i]); level > 0 {
			all = append(all, section{heading: title, page: markdown.Page{Path: p.Path}})
		}
		if len(all) > 0 {
			last := &all[len(all)-1].page
			last.Lines = append(last.Lines, line)
		}
	}
	return all
}

// digest changes with every word of the section, and with no line break.
func (s section) digest() string {
	words := strings.Join(strings.Fields(strings.Join(s.page.Lines, " ")), " ")
	return fmt.Sprintf("%x", sha256.Sum256([]byte(words)))[:8]
}

// mark returns the digest that a section of a translation names, "" if it names none.
func (s section) mark() string {
	for _, line := range s.page.Lines {
		if found := sectionMark.FindStringSubmatch(line); found != nil {
			return found[1]
		}
	}
	return ""
}

// code returns the blocks of code.
func (s section) code() (all []string) {
	blocks, _ := s.page.Split()
	for _, b := range blocks {
		all = append(all, b.Language+"\n"+b.Code)
	}
	return all
}

// files returns the targets of links, sorted, without headings, whose names differ. A translated page stands for the
// English one.
func (s section) files() (all []string) {
	_, prose := s.page.Split()
	for _, line := range prose {
		for _, found := range links.FindAllStringSubmatch(inlineCode.ReplaceAllString(line, ""), -1) {
			file, _, _ := strings.Cut(strings.Join(found[1:], ""), "#")
			if file = original(file); file != "" {
				all = append(all, file)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// outOfStep returns a line for each difference between a page and its translation.
func outOfStep(english, other markdown.Page) (mistakes []string) {
	from, to := sections(english), sections(other)
	if len(from) != len(to) {
		return []string{fmt.Sprintf("%s has %d headings, %s has %d", english.Path, len(from), other.Path, len(to))}
	}
	for i, s := range from {
		report := func(format string, args ...any) {
			mistakes = append(mistakes, fmt.Sprintf("%s, %q: ", other.Path, to[i].heading)+fmt.Sprintf(format, args...))
		}
		if to[i].mark() != s.digest() {
			report("is marked as the translation of %q, the English section is now %q: translate what has changed, "+
				"and write the line <!-- english: %[2]s --> below the heading", to[i].mark(), s.digest())
		}
		if !slices.Equal(to[i].code(), s.code()) {
			report("the code differs from the English page")
		}
		if !slices.Equal(to[i].files(), s.files()) {
			report("links to %q, the English page to %q", to[i].files(), s.files())
		}
	}
	return mistakes
}
