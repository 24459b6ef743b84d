package httplock

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/jsonfield"
)

// fields are the named values in one place of a request. A handler may find a value there by another spelling of its name than the
// guard, or in another place: r.FormValue prefers the body to the query and fiber's c.FormValue the query to the body, and Bind of
// Echo and fiber disregards case. A client could then run one value under any number of keys. So a key is made of a value only if
// there is no other one that a handler could take for it, and a request lacks one only if a handler would find none either: see
// [fields.only], [place.lacks] and [orElsewhere].
type fields url.Values

// place is a second place in which a handler may look for a value.
type place struct {
	name string
	of   func(r *http.Request) (fields, error)
}

var (
	theQuery = place{"the query", queryOf}
	theForm  = place{"the form", formOf}
)

// lacks returns the key of a value in r, and refuses the request if this place has one of its names too.
func (p place) lacks(r *http.Request, key Key, names ...string) (Key, error) {
	others, err := p.of(r)
	switch {
	case err != nil:
		return Key{}, err
	case others.times(names...) > 0:
		return Key{}, KeyError(ErrKeyInvalid, "%s is in %s too", partWords(key.parts[0].name), p.name)
	}
	return key, nil
}

// errElsewhere is the [ErrKeyInvalid] of a value that a handler could find, but in another place than the key function. [FirstOf]
// tries the next function, which may be that of the place. [OptionalKey] does not take it for a missing key.
var errElsewhere = fmt.Errorf("%w", ErrKeyInvalid)

// orElsewhere returns absent, the error of a key function that found no value of these names, unless a handler could find one in the
// query or the form of r.
func orElsewhere(r *http.Request, part string, absent error, names ...string) error {
	if !errors.Is(absent, ErrKeyRequired) {
		return absent
	}
	for _, p := range []place{theQuery, theForm} {
		others, err := p.of(r)
		var unreadable *keyError
		switch {
		case errors.Is(err, ErrKeyInvalid) && errors.As(err, &unreadable):
			return KeyError(errElsewhere, "%s is missing, and %s", partWords(part), unreadable.text)
		case err != nil:
			return err
		case others.filled(names...):
			return KeyError(errElsewhere, "%s is in another place", partWords(part))
		}
	}
	return absent
}

// otherType is the error of a key function for a body of a type that it does not read. ShouldBindJSON of gin disregards the type, and
// Bind goes by it, so only a body in which there is no such name is one without a key. [orElsewhere] looks into forms.
func otherType(r *http.Request, text string, names ...string) error {
	body, err := peek(r)
	mt := mediaType(r)
	switch {
	case err != nil && !errors.Is(err, ErrKeyInvalid):
		return err
	case (mt == formType || mt == multipartType) && !beginsJSON(body),
		err == nil && len(body) == 0,
		err == nil && isJSON(mt) && !jsonfield.Has(body, names...):
		return KeyError(ErrKeyRequired, "%s", text)
	}
	return KeyError(errElsewhere, "%s", text)
}

// beginsJSON reports whether a decoder could read an object or array in a body, which may be labelled as a form and go on as one. Forms
// do not begin so: browsers escape these characters in names, and a multipart form begins with a dash.
func beginsJSON(body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n")
	return len(body) > 0 && (body[0] == '{' || body[0] == '[')
}

// spelled returns names and the Go names that fields of them usually have, for which case does not count: voucher_code is VoucherCode.
// The binders of gin and fiber take the Go name of a field that has no tag for forms, although it has one for JSON.
func spelled(names []string) []string {
	for _, name := range names {
		names = append(names, wordBreaks.Replace(name))
	}
	return names
}

var wordBreaks = strings.NewReplacer("_", "", "-", "")

// only returns the key of the one value of that name. An empty value counts as missing, since browsers send the fields that a user
// has left blank.
func (f fields) only(part, name string) (Key, error) {
	switch times := f.times(name); {
	case times > 1:
		return Key{}, repeated(part, times)
	case len(f[name]) == 1:
		return NewKey(part, f[name][0])
	case f.filled(name):
		return Key{}, KeyError(ErrKeyInvalid, "%s is in another spelling", partWords(part))
	}
	return Key{}, missing(part)
}

// times returns how many values a handler could take for one of these names.
func (f fields) times(names ...string) int { return len(f.values(names)) }

// filled reports whether one of them is not empty.
func (f fields) filled(names ...string) bool { return strings.Join(f.values(names), "") != "" }

func (f fields) values(names []string) (all []string) {
	for spelling, values := range f {
		named := dotted(spelling)
		if slices.ContainsFunc(names, func(name string) bool {
			path := dotted(name)
			return strings.EqualFold(named, path) || below(named, path)
		}) {
			all = append(all, values...)
		}
	}
	return all
}

// below reports whether a name in dots is one of an element of the value with that path.
func below(named, path string) bool {
	for i, c := range named {
		if c == '.' && strings.EqualFold(named[:i], path) {
			return true
		}
	}
	return false
}

// dotted returns a name as the binder of fiber reads it: order[id] is order.id, and each empty pair of brackets is nothing.
func dotted(name string) string {
	if !strings.Contains(name, "[") {
		return name
	}
	return brackets.Replace(name)
}

var brackets = strings.NewReplacer("[]", "", "[", ".", "]", "")

func queryOf(r *http.Request) (fields, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		// The error of url repeats what the client sent.
		return nil, KeyError(ErrKeyInvalid, "the query is malformed")
	}
	return fields(query), nil
}

// cookiesOf returns the cookies of r with their values unescaped, as gin has them. It also returns those that net/http leaves out
// because a character of the value is not allowed: fiber has these.
func cookiesOf(r *http.Request) fields {
	cookies := url.Values{}
	for _, line := range r.Header["Cookie"] {
		for pair := range strings.SplitSeq(line, ";") {
			name, value, _ := strings.Cut(pair, "=")
			value = textproto.TrimString(value)
			if len(value) > 1 && strings.HasPrefix(value, `"`) && strings.HasSuffix(value, `"`) {
				value = value[1 : len(value)-1]
			}
			cookies.Add(textproto.TrimString(name), cookieText(value))
		}
	}
	return fields(cookies)
}

// cookieText returns the text that the value of a cookie stands for: one key for all spellings of it.
func cookieText(value string) string {
	if text, err := url.QueryUnescape(value); err == nil {
		return text
	}
	return value
}

var errFormMalformed = KeyError(ErrKeyInvalid, "the form is malformed") // the errors of url repeat what the client sent

// formOf returns the fields of the body of r if a handler could take it for a form, and leaves the body to be read.
func formOf(r *http.Request) (fields, error) {
	switch {
	case !isForm(r):
		return nil, nil
	case len(r.PostForm) > 0:
		return fields(r.PostForm), nil
	}
	body, err := peek(r)
	switch {
	case err != nil:
		return nil, err
	case hasParts(r):
		return partsOf(body, r.Header.Get("Content-Type"))
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, errFormMalformed
	}
	return fields(form), nil
}

func isForm(r *http.Request) bool {
	// fasthttp also takes application/x-www-form-urlencoded-2.
	return hasParts(r) || strings.Contains(strings.ToLower(r.Header.Get("Content-Type")), "x-www-form-urlencoded")
}

func hasParts(r *http.Request) bool {
	return strings.Contains(strings.ToLower(r.Header.Get("Content-Type")), multipartType)
}

func partsOf(body []byte, contentType string) (fields, error) {
	_, params, _ := mime.ParseMediaType(contentType)
	form := url.Values{}
	switch {
	case len(body) == 0: // or it was read in front of the guard
		return fields(form), nil
	case params["boundary"] == "":
		return nil, errFormMalformed
	}
	for reader := multipart.NewReader(bytes.NewReader(body), params["boundary"]); ; {
		part, err := reader.NextRawPart()
		if err == io.EOF {
			return fields(form), nil
		}
		var value []byte
		if err == nil {
			value, err = io.ReadAll(part)
		}
		if err != nil {
			return nil, errFormMalformed
		}
		form.Add(part.FormName(), string(value))
	}
}
