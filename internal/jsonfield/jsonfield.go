// Package jsonfield finds a scalar in a JSON document that two programs could read in two ways, and refuses it then: for
// keys, of which nobody should be able to make two of one thing, or one of two.
package jsonfield

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds how deep arrays and objects may be nested.
const maxDepth = 32

var errTooDeep = fmt.Errorf("arrays and objects are nested more than %d deep", maxDepth)

// Error is why a document has no usable scalar at a pointer.
type Error struct {
	// Missing is true if there is nothing; otherwise the value or the document is in a form that is refused.
	Missing bool
	// Text says what is wrong, without quoting the document.
	Text string
}

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// Find returns the string, number or boolean at an RFC 6901 pointer of a JSON document. In front of it is what it is:
// "string:1", "number:1", "boolean:true". A number is as written: 1, 1.0 and 1e0 are three.
//
// An empty string is "string:". It is an [Error] that is Missing if the document is empty or has nothing there, or null. It is one
// that is not if there is an array or object, if an object on the way has a name twice, or the name of the pointer in
// a spelling that differs by case (which decoders take for the same), if arrays and objects are nested more than 32 deep,
// and if the document is not exactly one JSON value in UTF-8. Any other error comes from [CheckPointer].
func Find(document []byte, pointer string) (string, error) {
	path, err := parsePointer(pointer)
	if err != nil {
		return "", err
	}
	switch {
	case len(document) == 0:
		return "", &Error{Missing: true, Text: "the body is empty"}
	case !utf8.Valid(document), !json.Valid(document):
		return "", &Error{Text: "the body is not JSON"}
	}
	s := search{json.NewDecoder(bytes.NewReader(document)), document}
	s.UseNumber()
	value, err := s.value(path, 0)
	switch {
	case err != nil:
		return "", &Error{Text: fmt.Sprintf("JSON at %q: %v", pointer, err)}
	case value == "":
		return "", &Error{Missing: true, Text: fmt.Sprintf("no JSON at %q", pointer)}
	}
	return value, nil
}

// search looks for a value in a valid document. It continues to the end: what comes last may be what a
// handler takes.
type search struct {
	*json.Decoder
	document []byte
}

// value reads one value and returns the scalar at path in it, or "" if there is none. It is in depth arrays
// and objects: no more than the pointer has tokens, which is bounded.
func (s search) value(path []string, depth int) (string, error) {
	begin := s.InputOffset()
	token, err := s.Token()
	if err != nil {
		return "", err
	}
	delim, nested := token.(json.Delim)
	switch {
	case !nested && len(path) == 0:
		return scalar(token, s.document[begin:s.InputOffset()])
	case !nested:
		return "", nil
	case len(path) == 0:
		return "", errors.New("it is an array or object")
	case delim == '[':
		return s.array(path, depth+1)
	}
	return s.object(path, depth+1)
}

func (s search) object(path []string, depth int) (found string, err error) {
	seen := map[string]bool{}
	matched := false
	for s.More() {
		token, err := s.Token()
		if err != nil {
			return "", err
		}
		name, _ := token.(string)
		// Of two names which is meant is up to the decoder. That of Go takes the last one of any case.
		matches := strings.EqualFold(name, path[0])
		if seen[name] || matched && matches {
			return "", errors.New("an object has a name twice")
		}
		seen[name], matched = true, matched || matches
		value, err := s.element(path, matches, depth)
		switch {
		case err != nil:
			return "", err
		case name == path[0]:
			found = value
		case value != "" && value != "string:":
			return "", errors.New("an object has a name in another spelling")
		}
	}
	_, err = s.Token()
	return found, err
}

func (s search) array(path []string, depth int) (found string, err error) {
	for i := 0; s.More(); i++ {
		value, err := s.element(path, strconv.Itoa(i) == path[0], depth)
		if err != nil {
			return "", err
		}
		found += value
	}
	_, err = s.Token()
	return found, err
}

// element reads a value of an object or array, which is on the way or beside it.
func (s search) element(path []string, onTheWay bool, depth int) (string, error) {
	if onTheWay {
		return s.value(path[1:], depth)
	}
	return "", s.skip(depth)
}

func (s search) skip(depth int) error {
	for open := 0; ; {
		token, err := s.Token()
		if err != nil {
			return err
		}
		switch delim, _ := token.(json.Delim); delim {
		case '[', '{':
			open++
		case ']', '}':
			open--
		}
		switch {
		case open == 0:
			return nil
		case depth+open > maxDepth:
			return errTooDeep
		}
	}
}

// scalar returns "" for null. The text is what stands for the token in the document.
func scalar(token json.Token, text []byte) (string, error) {
	switch v := token.(type) {
	case string:
		if HasLoneSurrogate(text) {
			return "", errors.New("a string is not Unicode")
		}
		return "string:" + v, nil
	case json.Number:
		return "number:" + v.String(), nil
	case bool:
		return "boolean:" + strconv.FormatBool(v), nil
	}
	return "", nil
}

// HasLoneSurrogate returns true if a string in a JSON text has an escaped half of a surrogate pair. The decoder puts U+FFFD in the
// place of all of them, so that different strings would be equal.
func HasLoneSurrogate(text []byte) bool {
	high := false // a high half has just ended
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			if high {
				return true
			}
			continue
		}
		i++
		if i >= len(text) || text[i] != 'u' || i+4 >= len(text) {
			if high {
				return true
			}
			continue
		}
		code, _ := strconv.ParseUint(string(text[i+1:i+5]), 16, 16)
		i += 4
		switch low := code >= 0xdc00 && code <= 0xdfff; {
		case high != low:
			return true
		default:
			high = code >= 0xd800 && code <= 0xdbff
		}
	}
	return high
}

// CheckPointer returns an error if pointer is not a pointer of RFC 6901, or one that [Find] can find nothing at. The
// empty pointer means the whole document.
func CheckPointer(pointer string) error {
	_, err := parsePointer(pointer)
	return err
}

// Names returns the names and indexes on the way to the value at a pointer, none for the whole document.
func Names(pointer string) []string {
	path, _ := parsePointer(pointer)
	return path
}

// Has reports whether any object in a document has a value that is neither null nor an empty string by one of the names, in any case.
// What is not JSON may have one.
func Has(document []byte, names ...string) bool {
	if !json.Valid(document) {
		return true
	}
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	for named := false; ; {
		token, err := d.Token()
		switch {
		case err != nil:
			return err != io.EOF
		case named && token != nil && token != "":
			return true
		}
		text, _ := token.(string)
		isName := bytes.HasPrefix(bytes.TrimLeft(document[d.InputOffset():], " \t\r\n"), []byte(":"))
		named = isName && slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, text) })
	}
}

func parsePointer(pointer string) ([]string, error) {
	if pointer == "" {
		return nil, nil
	}
	path := strings.Split(pointer, "/")
	switch {
	case path[0] != "":
		return nil, fmt.Errorf("holdfast: JSON pointer %q: it does not begin with /", pointer)
	case len(path)-1 > maxDepth:
		return nil, fmt.Errorf("holdfast: JSON pointer %q: it is more than %d deep", pointer, maxDepth)
	case !utf8.ValidString(pointer):
		return nil, fmt.Errorf("holdfast: JSON pointer %q: it is not UTF-8", pointer)
	}
	path = path[1:]
	for i, token := range path {
		if strings.Contains(withoutEscapes.Replace(token), "~") {
			return nil, fmt.Errorf("holdfast: JSON pointer %q: a ~ is not followed by 0 or 1", pointer)
		}
		path[i] = unescaped.Replace(token)
	}
	return path, nil
}

var (
	withoutEscapes = strings.NewReplacer("~0", "", "~1", "")
	unescaped      = strings.NewReplacer("~0", "~", "~1", "/")
)
