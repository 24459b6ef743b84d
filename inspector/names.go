package inspector

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/internal/foreign"
)

// longestShown is how many bytes of a name a list shows. The page of the lock shows all of them.
const longestShown = 120

// plain returns true for a text that a person can read and type as it is: printable, without invisible or reversing characters,
// and without spaces at its ends, which a field of a form would hide.
func plain(text string) bool {
	return text != "" && strings.TrimSpace(text) == text && foreign.Line(text, len(text)) == text
}

// Bounds of texts on a page, in bytes: of a text, and of a value. A longer one ends with its length.
const (
	mostVisible = 4 << 10
	mostValue   = 64 << 10
)

// visible returns a text so that each of its characters can be seen. A text that is not plain is quoted as in Go.
func visible(text string) string { return visibleUpTo(text, mostVisible) }

// visibleValue is visible for the value of a record.
func visibleValue(text string) string { return visibleUpTo(text, mostValue) }

func visibleUpTo(text string, most int) string {
	if text == "" || plain(text) {
		return foreign.Line(text, most)
	}
	return foreign.Quote(text, most)
}

// short is visible for lists: a long text ends with an ellipsis.
func short(text string) string {
	shown := visible(text)
	if len(shown) <= longestShown {
		return shown
	}
	cut := shown[:longestShown]
	for !utf8.ValidString(cut) {
		cut = cut[:len(cut)-1]
	}
	return cut + "…"
}

// typedCharacters is how many characters an operator types to confirm an action.
const typedCharacters = 8

// confirmation returns what an operator types to confirm an action: the end of the name, which distinguishes it from
// names with the same beginning, or the digest of one that is hard to type. Both have eight characters, and a shorter
// name is typed as it is.
func confirmation(name, digest string) string {
	if plain(name) && len(name) <= longestShown {
		all := []rune(name)
		if end := string(all[max(len(all)-typedCharacters, 0):]); plain(end) {
			return end
		}
	}
	return digest
}

// confirms returns true if a text that was typed confirms an action: what was asked for, or the whole name.
func confirms(typed, name, digest string) bool {
	return typed != "" && (typed == confirmation(name, digest) || plain(name) && typed == name)
}

// link returns a relative address of a page with parameters, given as pairs. Empty ones are left out.
func link(page string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return "./" + page
	}
	// A space as "+" would be right too, but templates would write it as "&#43;".
	return "./" + page + "?" + strings.ReplaceAll(q.Encode(), "+", "%20")
}
