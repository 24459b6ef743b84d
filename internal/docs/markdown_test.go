package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the directory of the repository.
const root = "../.."

// A page is one file of Markdown, with the paths of this repository.
type page struct {
	path  string // relative to root
	lines []string
}

// A block is a fenced block of code.
type block struct {
	language string
	marker   string // the HTML comment on the line before, without its delimiters
	line     int    // of the first line of code, from 1
	code     string
}

// pages reads README.md, the other pages beside it, and docs.
func pages(t *testing.T) []page {
	t.Helper()
	var all []page
	for _, pattern := range []string{"*.md", "docs/*.md", "examples/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, newPage(filepath.ToSlash(name), string(text)))
		}
	}
	return all
}

func newPage(path, text string) page {
	return page{path: path, lines: strings.Split(text, "\n")}
}

// fence matches the line that begins or ends a block of code.
var fence = regexp.MustCompile("^ {0,3}```(.*)$")

// comment matches a line that is an HTML comment.
var comment = regexp.MustCompile(`^<!-- (.*) -->$`)

// split returns the blocks of code of the page, and its lines without them: those are empty instead.
func (p page) split() (blocks []block, prose []string) {
	prose = make([]string, len(p.lines))
	var open *block
	for i, line := range p.lines {
		found := fence.FindStringSubmatch(line)
		switch {
		case found != nil && open == nil:
			open = &block{language: strings.TrimSpace(found[1]), line: i + 2}
			if i > 0 {
				if marker := comment.FindStringSubmatch(p.lines[i-1]); marker != nil {
					open.marker = marker[1]
				}
			}
		case found != nil:
			blocks, open = append(blocks, *open), nil
		case open != nil:
			open.code += line + "\n"
		default:
			prose[i] = line
		}
	}
	return blocks, prose
}

// heading matches a heading, and punctuation what GitHub leaves out of its anchor.
var (
	heading     = regexp.MustCompile(`^ {0,3}#{1,6} +(.*?) *#*$`)
	inlineLink  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	punctuation = regexp.MustCompile(`[^\p{L}\p{N}\p{M}_ -]`)
)

// anchors returns the anchors of the page's headings, as GitHub makes them.
func (p page) anchors() map[string]bool {
	_, prose := p.split()
	anchors := make(map[string]bool)
	for _, line := range prose {
		found := heading.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		text := inlineLink.ReplaceAllString(found[1], "$1")
		anchor := strings.ReplaceAll(punctuation.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
		unique := anchor
		for n := 1; anchors[unique]; n++ {
			unique = anchor + "-" + string(rune('0'+n))
		}
		anchors[unique] = true
	}
	return anchors
}
