package httpguard

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/internal/jsonfield"
)

// CanonicalJSON is that of package httplock, which documents it.
func CanonicalJSON(p Payload) []byte {
	parts := []string{p.Query}
	mediaType, _, _ := p.typed()
	canonical, ok := []byte(nil), isJSON(mediaType) && p.ContentEncoding == ""
	if ok {
		canonical, ok = canonicalJSON(p.Body)
	}
	if ok {
		parts = append(parts, "\njson", p.typeText(), string(canonical))
	} else {
		parts = append(parts, p.content()...)
	}
	var all []byte
	for _, part := range parts {
		all = appendText(all, part)
	}
	return all
}

// appendText appends a text behind its length, so that no text can pass for the end of one and the beginning of another.
func appendText(b []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(text))), text...)
}

// canonicalJSON returns the same bytes for documents that are equal, and false for one that can be read in two ways.
func canonicalJSON(document []byte) ([]byte, bool) {
	if !utf8.Valid(document) || !json.Valid(document) || jsonfield.HasLoneSurrogate(document) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	canonical, err := canonicalValue(d)
	if _, end := d.Token(); err != nil || end != io.EOF {
		return nil, false
	}
	return canonical, true
}

var errNameTwice = errors.New("an object has a name twice")

// canonicalValue reads one value of a valid document.
func canonicalValue(d *json.Decoder) ([]byte, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case json.Delim:
		if v == '[' {
			return canonicalArray(d)
		}
		return canonicalObject(d)
	case string:
		return appendText([]byte{'s'}, v), nil
	case json.Number:
		return appendText([]byte{'n'}, v.String()), nil
	case bool:
		if v {
			return []byte{'t'}, nil
		}
		return []byte{'f'}, nil
	}
	return []byte{'0'}, nil // null
}

func canonicalArray(d *json.Decoder) ([]byte, error) {
	all := []byte{'['}
	for d.More() {
		value, err := canonicalValue(d)
		if err != nil {
			return nil, err
		}
		all = append(all, value...)
	}
	_, err := d.Token()
	return append(all, ']'), err
}

func canonicalObject(d *json.Decoder) ([]byte, error) {
	members := make(map[string][]byte)
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string)
		if _, twice := members[name]; twice {
			return nil, errNameTwice
		}
		if members[name], err = canonicalValue(d); err != nil {
			return nil, err
		}
	}
	all := []byte{'{'}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		all = append(appendText(all, name), members[name]...)
	}
	_, err := d.Token()
	return append(all, '}'), err
}
