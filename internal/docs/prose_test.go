package docs_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/markdown"
)

// Limits for the prose of a page, in words per sentence.
const (
	meanLimit    = 20
	longestLimit = 40
)

// vague matches pronouns for people. Programs are callers, waiters, holders, clients and servers.
var vague = regexp.MustCompile(`(?i)\b(somebody|nobody|whoever|everybody|anybody|someone|everyone|anyone)('s)?\b`)

// TestProse: the sentences of README and docs are short, and name the program that acts.
func TestProse(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, p := range pages(t) {
		if strings.HasSuffix(p.Path, translation) {
			continue
		}
		checked++
		for _, mistake := range badProse(p) {
			t.Error(mistake)
		}
	}
	if checked < 10 {
		t.Fatalf("found only %d pages", checked)
	}
}

// TestBadProseIsFound shows that the check can fail, and that it leaves code and tables alone.
func TestBadProseIsFound(t *testing.T) {
	t.Parallel()
	words := func(n int) string { return strings.Repeat("word ", n-1) + "end." }
	for text, mistakes := range map[string]int{
		words(19):                   0,
		words(19) + " " + words(19): 0,
		words(21):                   1, // the mean
		words(41):                   2, // the mean and the longest
		words(41) + strings.Repeat("\n\n"+words(3), 9):                  1, // the longest
		"* " + words(19) + "\n* " + words(19):                           0,
		"1. " + words(19) + "\n   " + words(19):                         0,
		"> " + words(41):                                                2,
		"| " + words(41) + " |":                                         0,
		"## " + words(41):                                               0,
		"```sh\n" + words(41) + "\n```":                                 0,
		"`" + words(41) + "`":                                           0,
		"[" + words(3) + "](" + words(41) + ")":                         0,
		"<!-- bench:begin -->\n" + words(41) + "\n\n<!-- bench:end -->": 0,
		"The lock is held by somebody.":                                 1,
		"| nobody | nothing |":                                          1,
		"# Whoever":                                                     1,
		"`nobody` and a body are fine.":                                 0,
		"```text\nnobody\n```":                                          0,
	} {
		if found := badProse(markdown.Parse("page.md", text)); len(found) != mistakes {
			t.Errorf("%q: found %q", text, found)
		}
	}
}

// badProse returns a line for each sentence of the page that is too long, for sentences that are too long on average, and
// for each vague word.
func badProse(p markdown.Page) (mistakes []string) {
	total := 0
	sentences := sentences(p)
	for _, s := range sentences {
		words := len(strings.Fields(s))
		total += words
		if words > longestLimit {
			mistakes = append(mistakes, fmt.Sprintf("%s: a sentence has %d words, more than %d: %s", p.Path, words, longestLimit, s))
		}
	}
	if len(sentences) > 0 && total > meanLimit*len(sentences) {
		mistakes = append(mistakes, fmt.Sprintf("%s: a sentence has %.1f words on average, more than %d", p.Path,
			float64(total)/float64(len(sentences)), meanLimit))
	}
	for _, line := range prose(p) {
		if word := vague.FindString(withoutCode(line)); word != "" {
			mistakes = append(mistakes, fmt.Sprintf("%s: name the program or the person instead of %q: %s", p.Path, word, line))
		}
	}
	return mistakes
}

// What is no sentence, or only part of the markup of one.
var (
	notSentences = regexp.MustCompile(`^\s*(\||#|<|!\[|\[[^\]]+\]: )`)
	listItem     = regexp.MustCompile(`^\s*([-*]|\d+\.)\s+`)
	quote        = regexp.MustCompile(`^\s*>\s?`)
	sentenceEnd  = regexp.MustCompile(`[.!?][*_)"”]*\s+`)
)

// sentences returns the sentences of paragraphs and lists. A piece of code counts as one word.
func sentences(p markdown.Page) (all []string) {
	var paragraph []string
	end := func() {
		text := withoutCode(strings.Join(paragraph, " "))
		text = markdown.WithoutTargets(text)
		for _, sentence := range strings.Split(sentenceEnd.ReplaceAllString(text, "$0\n"), "\n") {
			if sentence = strings.TrimSpace(sentence); sentence != "" {
				all = append(all, sentence)
			}
		}
		paragraph = nil
	}
	for _, line := range prose(p) {
		line = quote.ReplaceAllString(line, "")
		item := listItem.FindString(line)
		if item != "" || strings.TrimSpace(line) == "" || notSentences.MatchString(line) {
			end()
		}
		if !notSentences.MatchString(line) {
			paragraph = append(paragraph, strings.TrimSpace(line[len(item):]))
		}
	}
	end()
	return all
}

// prose returns the lines of the page without blocks of code, and without the section that the benchmark writes.
func prose(p markdown.Page) (lines []string) {
	_, prose := p.Split()
	written := false
	for _, line := range prose {
		written = written || strings.Contains(line, "bench:begin")
		if !written {
			lines = append(lines, line)
		}
		written = written && !strings.Contains(line, "bench:end")
	}
	return lines
}

// withoutCode puts the word "code" in place of each piece of code.
func withoutCode(text string) string { return inlineCode.ReplaceAllString(text, "code") }
