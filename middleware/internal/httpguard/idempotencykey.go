package httpguard

import (
	"fmt"
	"regexp"
	"strings"
)

// HeaderIdempotencyKey is the header field in which a client sends the key that it chose for a request.
const HeaderIdempotencyKey = "Idempotency-Key"

// maxKeyField bounds what is searched for a key. It leaves room for 255 escaped characters and parameters.
const maxKeyField = 1024

// What a structured field may hold, RFC 9651. The characters of a key are those of a String without the space;
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

// ParseIdempotencyKey is that of package httplock, which documents it.
func ParseIdempotencyKey(lines []string) (string, error) {
	return parseKeyField(HeaderIdempotencyKey, lines)
}

// parseKeyField is [ParseIdempotencyKey] for a header field of another name.
func parseKeyField(field string, lines []string) (string, error) {
	invalid := func(format string, args ...any) error {
		return KeyError(ErrKeyInvalid, "%s %s", headerWords(field), fmt.Sprintf(format, args...))
	}
	switch {
	case len(lines) == 0:
		return "", Missing("header:" + field)
	case len(lines) > 1:
		return "", invalid("is there %d times", len(lines))
	case len(lines[0]) > maxKeyField:
		return "", invalid("has %d bytes, at most %d are allowed", len(lines[0]), maxKeyField)
	}
	key, ok := quotedOrBare(lines[0])
	switch {
	case !ok:
		return "", invalid("%s", faultOf(lines[0]))
	case key == "":
		return "", invalid("is empty")
	case len(key) > maxKeyValue:
		return "", invalid("has a key of %d bytes, at most %d are allowed", len(key), maxKeyValue)
	}
	return key, nil
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
