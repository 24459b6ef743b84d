package httplock

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/jsonfield"
)

// Payload is what a request asks for, for [WithFingerprint].
type Payload struct {
	Method string
	// Host is the host of the route, if its pattern has one.
	Host string
	// Target is the path as the client has sent it. Path is what [http.StripPrefix] and the like have left of it.
	Target, Path string
	// Query is the part after the question mark.
	Query string
	// ContentType is the Content-Type, with commas between several of them.
	ContentType string
	// ContentEncoding are the codings of the body in their order, in lower case: "gzip, br". It is empty for none, as
	// "identity" is. A body with a coding is compared as it is, unless a program in front of the guard has decoded it and
	// removed the field.
	ContentEncoding string
	// Header has the fields that [WithComparedHeader] names, as far as the request has them.
	Header http.Header
	// Body is the whole body, or as much of it as was buffered. If the body was parsed as a form in front of the guard, it
	// is a body of the same fields, in the order of their names.
	Body []byte
}

// fingerprint distinguishes payloads: by all that they are made of, or by the operation and what the application finds of
// interest. The operation always counts, so that no key brings the answer of another one: the method, the host of the
// route, and the path before and after [http.StripPrefix], because each may be the same for two operations. It needs
// the secret of the keys, if there is one: paths and bodies can be guessed like users.
func (c *settings) fingerprint(p Payload) []byte {
	parts := []string{p.Method, p.Host, p.Target, p.Path}
	for _, name := range c.CompareHeader {
		values := p.Header[name]
		parts = append(append(parts, name, strconv.Itoa(len(values))), values...)
	}
	if c.Fingerprint != nil {
		parts = append(parts, string(c.Fingerprint(p)))
	} else {
		parts = append(append(parts, p.Query), p.content()...)
	}
	sum := guards.Digest(c.KeySecret, parts...)
	return sum[:]
}

// payload returns what of a request is compared. Its body counts if it was buffered: see [bufferBody].
func (c *settings) payload(r *http.Request) Payload {
	route, _ := parsePattern(r.Pattern)
	p := Payload{
		Method: r.Method, Host: route.host, Target: targetOf(r).EscapedPath(), Path: r.URL.EscapedPath(),
		Query: r.URL.RawQuery, ContentType: strings.Join(r.Header["Content-Type"], ", "),
		ContentEncoding: codingsOf(r.Header["Content-Encoding"]),
	}
	if body, ok := r.Body.(*bodyBuffer); ok {
		p.Body = body.compared()
	}
	if len(c.CompareHeader) > 0 {
		p.Header = make(http.Header, len(c.CompareHeader))
	}
	for _, name := range c.CompareHeader {
		if values, ok := r.Header[name]; ok {
			p.Header[name] = values
		}
	}
	return p
}

// typed returns the media type of the body in lower case and its parameters, or false if the Content-Type is malformed.
func (p Payload) typed() (mediaType string, params map[string]string, ok bool) {
	mediaType, params, err := mime.ParseMediaType(p.ContentType)
	if charset, has := params["charset"]; has {
		params["charset"] = strings.ToLower(charset)
	}
	return mediaType, params, err == nil
}

// typeText returns the Content-Type as it is compared: in one spelling, with its parameters, which may change what the body
// means. The charset of JSON is UTF-8 whether or not the type says so.
func (p Payload) typeText() string {
	mediaType, params, ok := p.typed()
	if !ok {
		return p.ContentType
	}
	if isJSON(mediaType) && params["charset"] == "utf-8" {
		delete(params, "charset")
	}
	if text := mime.FormatMediaType(mediaType, params); text != "" {
		return text
	}
	return p.ContentType
}

// isJSON reports whether a media type is one of JSON documents.
func isJSON(mediaType string) bool {
	return mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
}

// codingsOf returns the codings of a Content-Encoding in their order, in one spelling: "" for none.
func codingsOf(lines []string) string {
	var codings []string
	for _, line := range lines {
		for coding := range strings.SplitSeq(line, ",") {
			coding = strings.ToLower(textproto.TrimString(coding))
			if coding != "" && coding != "identity" {
				codings = append(codings, coding)
			}
		}
	}
	return strings.Join(codings, ", ")
}

// maxParts bounds the parts of a multipart body that are looked at one by one.
const maxParts = 1000

// content returns what of the body, its type and its coding distinguishes payloads. Of a multipart body it is the parts:
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
// exactly a multipart one: it is then compared as it is. All header fields of a part count, its name and the name of a file
// among them. The texts have no meaning for each other, since lengths are hashed in front of them; the number of header
// lines says where a part ends.
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

// framed reports whether a body begins and ends with its boundary, each on a line of its own, and ends there for the first time. What
// stands before or behind is no part, but a handler may read it. Parsers skip a first line that only begins with the boundary.
func framed(body []byte, boundary string) bool {
	line, begin := []byte("\r\n"), []byte("--"+boundary)
	end := slices.Concat(line, begin, []byte("--"))
	body = bytes.TrimPrefix(bytes.TrimSuffix(body, line), line)
	if bytes.Equal(body, end[len(line):]) { // without parts
		return boundary != ""
	}
	rest, begins := bytes.CutPrefix(body, begin)
	return boundary != "" && begins && bytes.HasPrefix(bytes.TrimLeft(rest, " \t"), line) &&
		bytes.HasSuffix(body, end) && bytes.Count(body, end) == 1
}

// CanonicalJSON is a function for [WithFingerprint]: two bodies in JSON are equal if they differ only in white space, in the order
// of the names in objects, and in how strings are escaped. Numbers are compared as they are written: 1 and 1.0 differ, and so do
// large ones that a float64 would make equal. The query counts too, and the content type with its parameters, but for the
// charset UTF-8.
//
// A body of another type, or with a Content-Encoding, is compared as without the function. So is one that is not exactly one JSON
// value, that has a name twice in an object, or an escaped half of a surrogate pair, because programs read these in different ways,
// and one whose arrays and objects are nested more than 200 deep.
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
	c := canonicalizer{d: json.NewDecoder(bytes.NewReader(document))}
	c.d.UseNumber()
	err := c.value(0)
	if _, end := c.d.Token(); err != nil || end != io.EOF {
		return nil, false
	}
	return c.all, true
}

// deepestJSON bounds how deep the arrays and objects of a canonical document are nested. Members that are not in order are moved once
// for each object around them.
const deepestJSON = 200

var (
	errNameTwice = errors.New("an object has a name twice")
	errTooDeep   = errors.New("the document is nested too deep")
)

// canonicalizer writes all values of a document to one buffer: a copy at each level would cost a small request gigabytes.
type canonicalizer struct {
	d          *json.Decoder
	all, spare []byte
}

// value reads one value of a valid document, in so many others.
func (c *canonicalizer) value(depth int) error {
	token, err := c.d.Token()
	if err != nil {
		return err
	}
	switch v := token.(type) {
	case json.Delim:
		if depth == deepestJSON {
			return errTooDeep
		}
		if v == '[' {
			return c.array(depth + 1)
		}
		return c.object(depth + 1)
	case string:
		c.all = appendText(append(c.all, 's'), v)
	case json.Number:
		c.all = appendText(append(c.all, 'n'), v.String())
	case bool:
		if v {
			c.all = append(c.all, 't')
		} else {
			c.all = append(c.all, 'f')
		}
	default: // null
		c.all = append(c.all, '0')
	}
	return nil
}

func (c *canonicalizer) array(depth int) error {
	c.all = append(c.all, '[')
	for c.d.More() {
		if err := c.value(depth); err != nil {
			return err
		}
	}
	_, err := c.d.Token()
	c.all = append(c.all, ']')
	return err
}

// member is where a member of an object, with its name, begins and ends in the buffer.
type member struct {
	name     string
	from, to int
}

func byName(a, b member) int { return strings.Compare(a.name, b.name) }

func (c *canonicalizer) object(depth int) error {
	c.all = append(c.all, '{')
	begin := len(c.all)
	var members []member
	for c.d.More() {
		token, err := c.d.Token()
		if err != nil {
			return err
		}
		m := member{from: len(c.all)}
		m.name, _ = token.(string)
		c.all = appendText(c.all, m.name)
		if err := c.value(depth); err != nil {
			return err
		}
		m.to = len(c.all)
		members = append(members, m)
	}
	if !slices.IsSortedFunc(members, byName) {
		slices.SortFunc(members, byName)
		c.spare = append(c.spare[:0], c.all[begin:]...)
		c.all = c.all[:begin]
		for _, m := range members {
			c.all = append(c.all, c.spare[m.from-begin:m.to-begin]...)
		}
	}
	for i := 1; i < len(members); i++ {
		if members[i].name == members[i-1].name {
			return errNameTwice
		}
	}
	_, err := c.d.Token()
	c.all = append(c.all, '}')
	return err
}
