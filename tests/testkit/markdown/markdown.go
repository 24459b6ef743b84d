// Package markdown reads the pages of the documentation, for the tests that check them: the fenced blocks of code, the
// prose between them, and the anchors of headings. It knows as much of Markdown as these pages use.
package markdown

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// A Page is one file of Markdown.
type Page struct {
	Path  string // slash-separated, relative to the root of the repository
	Lines []string
}

// A Block is a fenced block of code.
type Block struct {
	Language string // the word after the opening fence
	Marker   string // the text of the HTML comment on the line before the fence, "" if there is none
	Line     int    // the number of the first line of code, from 1
	Code     string
}

// Parse makes a page of its text.
func Parse(path, text string) Page {
	return Page{Path: path, Lines: strings.Split(text, "\n")}
}

// Read reads the page with that path below root.
func Read(root, path string) (Page, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	return Parse(path, string(text)), err
}

// Glob reads the pages below root whose paths match one of the patterns of [filepath.Glob], in the order of the patterns.
func Glob(root string, patterns ...string) ([]Page, error) {
	var all []Page
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			relative, err := filepath.Rel(root, path)
			if err != nil {
				return nil, err
			}
			page, err := Read(root, filepath.ToSlash(relative))
			if err != nil {
				return nil, err
			}
			all = append(all, page)
		}
	}
	return all, nil
}

// fence matches the line that begins or ends a block of code.
var fence = regexp.MustCompile("^ {0,3}```(.*)$")

// comment matches a line that is an HTML comment.
var comment = regexp.MustCompile(`^<!-- (.*) -->$`)

// Split returns the blocks of code of the page, and its lines without the blocks: the lines of a block are empty there.
func (p Page) Split() (blocks []Block, prose []string) {
	prose = make([]string, len(p.Lines))
	var open *Block
	for i, line := range p.Lines {
		found := fence.FindStringSubmatch(line)
		switch {
		case found != nil && open == nil:
			open = &Block{Language: strings.TrimSpace(found[1]), Line: i + 2}
			if i > 0 {
				if marker := comment.FindStringSubmatch(p.Lines[i-1]); marker != nil {
					open.Marker = marker[1]
				}
			}
		case found != nil:
			blocks, open = append(blocks, *open), nil
		case open != nil:
			open.Code += line + "\n"
		default:
			prose[i] = line
		}
	}
	return blocks, prose
}

// Section returns the blocks between a heading and the next heading of the same or a higher level. It returns nil if
// the page has no such heading.
func (p Page) Section(title string) []Block {
	_, prose := p.Split()
	first, last, level := 0, len(prose), 0
	for i, line := range prose {
		text, depth := Heading(line)
		switch {
		case depth == 0:
		case level == 0 && text == title:
			first, level = i, depth
		case level > 0 && depth <= level:
			last = min(last, i)
		}
	}
	if level == 0 {
		return nil
	}
	blocks, _ := p.Split()
	var section []Block
	for _, b := range blocks {
		if first < b.Line && b.Line <= last {
			section = append(section, b)
		}
	}
	return section
}

// heading matches a heading, and punctuation what GitHub leaves out of its anchor.
var (
	heading     = regexp.MustCompile(`^ {0,3}(#{1,6}) +(.*?) *#*$`)
	inlineLink  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	punctuation = regexp.MustCompile(`[^\p{L}\p{N}\p{M}_ -]`)
)

// Heading returns the title of a line that is a heading, and its level from 1. The level of any other line is 0.
func Heading(line string) (title string, level int) {
	if found := heading.FindStringSubmatch(line); found != nil {
		return found[2], len(found[1])
	}
	return "", 0
}

// WithoutTargets returns a text with the titles of its links in place of the links.
func WithoutTargets(text string) string { return inlineLink.ReplaceAllString(text, "$1") }

// Anchors returns the anchors of the page's headings, as GitHub makes them.
func (p Page) Anchors() map[string]bool {
	_, prose := p.Split()
	anchors := make(map[string]bool)
	for _, line := range prose {
		title, level := Heading(line)
		if level == 0 {
			continue
		}
		text := WithoutTargets(title)
		anchor := strings.ReplaceAll(punctuation.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
		unique := anchor
		for n := 1; anchors[unique]; n++ {
			unique = anchor + "-" + strconv.Itoa(n)
		}
		anchors[unique] = true
	}
	return anchors
}
