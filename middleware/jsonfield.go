package middleware

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxJSONDepth bounds how deep arrays and objects may be nested.
const maxJSONDepth = 32

var errTooDeep = fmt.Errorf("arrays and objects are nested more than %d deep", maxJSONDepth)

// JSONField returns the string, number or boolean at an RFC 6901 pointer ("/order/id") of a JSON document, for
// use as the value of a key. In front of it is what it is, so that the string "1" and the number 1 make two
// keys: "string:1", "number:1", "boolean:true". A number is as written: 1, 1.0 and 1e0 make three keys. So
// prefer strings, or let the handler refuse what it would not have written itself.
//
// The error is [ErrKeyRequired] if the document is empty or has nothing there, null, or an empty string. It is
// [ErrKeyInvalid] if there is an array or object, if an object on the way has a name twice, or the name of the
// pointer in two spellings that differ by case (which decoders take for one), if arrays and objects are nested
// more than 32 deep, and if the document is not exactly one JSON value in UTF-8. Any other error is that of
// [CheckPointer].
func JSONField(body []byte, pointer string) (string, error) {
	path, err := parsePointer(pointer)
	if err != nil {
		return "", err
	}
	switch {
	case len(body) == 0:
		return "", fmt.Errorf("%w: the body is empty", ErrKeyRequired)
	case !utf8.Valid(body), !json.Valid(body):
		return "", fmt.Errorf("%w: the body is not JSON", ErrKeyInvalid)
	}
	search := jsonSearch{json.NewDecoder(bytes.NewReader(body))}
	search.UseNumber()
	value, err := search.value(path, 0)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: JSON at %q: %w", ErrKeyInvalid, pointer, err)
	case value == "":
		return "", fmt.Errorf("%w: no JSON at %q", ErrKeyRequired, pointer)
	}
	return value, nil
}

// jsonSearch looks for a value in a valid document. It goes on to the end: what comes last may be what a
// handler takes.
type jsonSearch struct{ *json.Decoder }

// value reads one value and returns the scalar at path in it, or "" if there is none. It is in depth arrays
// and objects: no more than the pointer has tokens, which is bounded.
func (s jsonSearch) value(path []string, depth int) (string, error) {
	token, err := s.Token()
	if err != nil {
		return "", err
	}
	delim, nested := token.(json.Delim)
	switch {
	case !nested && len(path) == 0:
		return scalar(token)
	case !nested:
		return "", nil
	case len(path) == 0:
		return "", errors.New("it is an array or object")
	case delim == '[':
		return s.array(path, depth+1)
	}
	return s.object(path, depth+1)
}

func (s jsonSearch) object(path []string, depth int) (found string, err error) {
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
		value, err := s.element(path, name == path[0], depth)
		if err != nil {
			return "", err
		}
		found += value // at most one is not empty
	}
	_, err = s.Token()
	return found, err
}

func (s jsonSearch) array(path []string, depth int) (found string, err error) {
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
func (s jsonSearch) element(path []string, onTheWay bool, depth int) (string, error) {
	if onTheWay {
		return s.value(path[1:], depth)
	}
	return "", s.skip(depth)
}

func (s jsonSearch) skip(depth int) error {
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
		case depth+open > maxJSONDepth:
			return errTooDeep
		}
	}
}

// scalar returns "" for what is no key: null and the empty string.
func scalar(token json.Token) (string, error) {
	switch v := token.(type) {
	case string:
		// The decoder puts this in the place of halves of surrogate pairs: of any, so they would meet.
		if strings.ContainsRune(v, utf8.RuneError) {
			return "", errors.New("a string is not Unicode")
		}
		if v != "" {
			return "string:" + v, nil
		}
	case json.Number:
		return "number:" + v.String(), nil
	case bool:
		return "boolean:" + strconv.FormatBool(v), nil
	}
	return "", nil
}
