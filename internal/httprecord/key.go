package httprecord

import (
	"fmt"
	"regexp"
	"strings"
)

// MaxKey bounds the value of one part of a key, in bytes.
const MaxKey = 255

// maxKeyField bounds what is searched for a key. It leaves room for 255 escaped characters and parameters.
const maxKeyField = 1024

// What a structured field may hold, RFC 9651. A key may have the characters of a String without the space;
// a bare key lacks what would make it a list, a parameter or a quoted String that was not closed.
const (
	sfString  = `"(?:[ !#-\[\]-~]|\\["\\])*"`
	sfNumber  = `-?(?:[0-9]{1,12}\.[0-9]{1,3}|[0-9]{1,15})`
	sfToken   = "[A-Za-z*][A-Za-z0-9!#$%&'*+.^_`|~:/-]*"
	sfBytes   = `:[A-Za-z0-9+/=]*:`
	sfBoolean = `\?[01]`
	sfDate    = `@-?[0-9]{1,15}`
	sfDisplay = `%"(?:[ !#$&-~]|%[0-9a-f]{2})*"`

	sfBareItem = sfString + "|" + sfNumber + "|" + sfToken + "|" + sfBytes + "|" +
		sfBoolean + "|" + sfDate + "|" + sfDisplay
	sfParameters = `(?:; *[a-z*][a-z0-9_.*-]*(?:=(?:` + sfBareItem + `))?)*`

	quotedKey = `"((?:[!#-\[\]-~]|\\["\\])*)"`
	bareKey   = `([!#-+\--:<-\[\]-~]*)`
)

var (
	quotedKeyField = regexp.MustCompile(`^ *` + quotedKey + sfParameters + ` *$`)
	bareKeyField   = regexp.MustCompile(`^ *` + bareKey + ` *$`)
	unescape       = strings.NewReplacer(`\\`, `\`, `\"`, `"`)
)

// ParseKey returns the key in a line of an Idempotency-Key header, which is a String of RFC 9651 between 1 and [MaxKey] bytes of
// visible ASCII. Parameters behind it are ignored if they follow RFC 9651; their values are not decoded. The key may be written
// without quotes, as many clients do: "k" and k are the same key. A key without quotes has no quotes, backslashes, spaces, commas,
// semicolons and parameters.
//
// If there is no key, fault is what is wrong with the line, as what is said of it: "is empty". It repeats one character of the
// line at most. ParseKey never cuts or skips a part to make a key of the rest.
func ParseKey(line string) (key, fault string) {
	if len(line) > maxKeyField {
		return "", fmt.Sprintf("has %d bytes, too many for a key: at most %d are allowed", len(line), MaxKey)
	}
	key, ok := quotedOrBare(line)
	switch {
	case !ok:
		return "", faultOf(line)
	case key == "":
		return "", "is empty"
	case len(key) > MaxKey:
		return "", fmt.Sprintf("has a key of %d bytes, at most %d are allowed", len(key), MaxKey)
	}
	return key, ""
}

// faultOf says what is wrong with a line in which there is no key. It repeats one character of it at most.
func faultOf(line string) string {
	const rule = "a key consists of visible ASCII characters without spaces; the quotes around it are optional"
	return fault(strings.Trim(line, " ")) + ": " + rule
}

func fault(text string) string {
	inner, quoted := strings.CutPrefix(text, `"`)
	for i := 0; i < len(inner); i++ {
		switch c := inner[i]; {
		case c <= ' ' || c > '~':
			return "has " + charWords(c)
		case !quoted && strings.IndexByte(`",;\`, c) >= 0:
			return "has " + charWords(c) + ", which a key without quotes cannot have"
		case quoted && c == '"':
			return "goes on behind the closing quote"
		case quoted && c == '\\':
			if i++; i >= len(inner) || inner[i] != '"' && inner[i] != '\\' {
				return "has a backslash in front of neither a quote nor a backslash"
			}
		}
	}
	if quoted {
		return "is not a quoted string, because the closing quote is missing"
	}
	return "is not a key"
}

// charWords names a character.
func charWords(c byte) string {
	switch {
	case c == ' ':
		return "a space"
	case c == '"':
		return "a quote"
	case c == ',':
		return "a comma"
	case c == ';':
		return "a semicolon"
	case c == '\\':
		return "a backslash"
	case c > '~' && c != 0x7f:
		return "a character outside ASCII"
	}
	return fmt.Sprintf("the control character 0x%02x", c)
}

func quotedOrBare(line string) (key string, ok bool) {
	if match := quotedKeyField.FindStringSubmatch(line); match != nil {
		return unescape.Replace(match[1]), true
	}
	if match := bareKeyField.FindStringSubmatch(line); match != nil {
		return match[1], true
	}
	return "", false
}
