package httpguard

import (
	"bytes"
	"crypto/sha256"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxParts bounds the parts of a multipart body that are looked at one by one.
const maxParts = 1000

// content returns what of the body, its type and its coding tells payloads apart. That of a multipart body is its parts:
// clients choose another boundary for each attempt, in the type and in the body. That of another form is its fields, so that
// it does not matter whether the form was parsed in front of the guard. A coded body is compared as it is.
func (p Payload) content() []string {
	if p.ContentEncoding != "" {
		return []string{"\ncoded", p.ContentEncoding, p.typeText(), string(p.Body)}
	}
	if parts, ok := p.multipart(); ok {
		return parts
	}
	if fields, ok := p.fields(); ok {
		return []string{"\nfields", p.typeText(), fields}
	}
	return []string{p.typeText(), string(p.Body)}
}

// fields returns the fields of a form in the order of their names, or false if the body is not exactly a form.
func (p Payload) fields() (text string, ok bool) {
	if mediaType, _, _ := p.typed(); mediaType != formType {
		return "", false
	}
	form, err := url.ParseQuery(string(p.Body))
	return form.Encode(), err == nil
}

// multipart returns the media type without the boundary and what each part consists of, or false if the body is not
// exactly a multipart one: it is then compared as it is. All header fields of a part count, its name and that of a file
// among them. The texts have no meaning for each other, since lengths are hashed in front of them; the number of header
// lines tells where a part ends.
func (p Payload) multipart() (texts []string, ok bool) {
	mediaType, params, ok := p.typed()
	boundary := params["boundary"]
	if !ok || !strings.HasPrefix(mediaType, "multipart/") || !framed(p.Body, boundary) {
		return nil, false
	}
	delete(params, "boundary")
	// The newline keeps this apart from the type of a body that is compared as it is.
	if texts = []string{"\nparts", mime.FormatMediaType(mediaType, params)}; texts[1] == "" {
		return nil, false
	}
	reader := multipart.NewReader(bytes.NewReader(p.Body), boundary)
	for range maxParts {
		part, err := reader.NextRawPart()
		if err == io.EOF {
			return texts, true
		}
		if err != nil {
			return nil, false
		}
		var lines []string
		for _, name := range slices.Sorted(maps.Keys(part.Header)) {
			for _, value := range part.Header[name] {
				lines = append(lines, name, value)
			}
		}
		body := sha256.New()
		if _, err := io.Copy(body, part); err != nil {
			return nil, false
		}
		texts = append(append(texts, strconv.Itoa(len(lines))), lines...)
		texts = append(texts, string(body.Sum(nil)))
	}
	return nil, false
}

// framed reports whether a body begins and ends with its boundary, and ends there for the first time. What stands before
// or behind is no part, but a handler may read it.
func framed(body []byte, boundary string) bool {
	line, begin := []byte("\r\n"), []byte("--"+boundary)
	end := slices.Concat(line, begin, []byte("--"))
	body = bytes.TrimPrefix(bytes.TrimSuffix(body, line), line)
	switch {
	case boundary == "" || !bytes.HasPrefix(body, begin):
		return false
	case bytes.Equal(body, end[len(line):]): // without parts
		return true
	}
	return bytes.HasSuffix(body, end) && bytes.Count(body, end) == 1
}
