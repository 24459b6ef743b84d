// Package logdigest finds the digest in what an operator has copied from a line of the log.
package logdigest

import "regexp"

// pasted matches a digest of a lock or a record, or the hash of a guard's key, alone or with its name.
var pasted = regexp.MustCompile(`^\s*(?:"?\w+"?[=:]\s*)?"?([0-9a-fA-F]{8}|[A-Za-z0-9_-]{43})"?,?\s*$`)

// Parse returns the digest, or the hash of a key, of a text such as ad3ab9f1, lock=ad3ab9f1 or "key_hash":"…". It returns false
// if the text has another form.
func Parse(text string) (digest string, ok bool) {
	found := pasted.FindStringSubmatch(text)
	if found == nil {
		return "", false
	}
	return found[1], true
}
