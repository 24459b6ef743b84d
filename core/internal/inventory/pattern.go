package inventory

import (
	"strings"

	"github.com/holdfast-go/holdfast/core/internal/script"
)

// escaper takes their meaning from the characters of a pattern.
var escaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// lockPattern returns the pattern of the keys of locks that begin with this text.
func lockPattern(begin string) string { return escaper.Replace(begin) + "*" }

// oncePattern returns a pattern of the keys of records whose lock's key would begin with this text. It matches some keys of other
// records too. Why: what is in front of the text depends on braces that may follow it, see script.NewKeys.
func oncePattern(begin string) string {
	return script.Reserved + "once*" + escaper.Replace(begin) + "*"
}
