package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/ginroute"
	"github.com/holdfast-go/holdfast/internal/jsonfield"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// keyPart is a part of the key of a request, and the key function that makes it.
type keyPart struct {
	key      httplock.Key
	function string
}

type keyParts []keyPart

func (p keyParts) join() (httplock.Key, error) {
	keys := make([]httplock.Key, len(p))
	for i, part := range p {
		keys[i] = part.key
	}
	if len(keys) == 0 {
		return httplock.Key{}, errors.New("the key has no parts: give the route, --user or --part")
	}
	return httplock.Join(keys...)
}

// functions returns the key functions of the parts, as programs write them.
func (p keyParts) functions() []string {
	names := make([]string, len(p))
	for i, part := range p {
		names[i] = part.function
	}
	return names
}

// kinds are the kinds of parts. Each makes the request that a guard would see, and leaves the key to the guard's own function.
// A kind with a name is written kind:name=value, another one kind=value; the function of a kind without value is written so.
var kinds = map[string]struct {
	named, bare bool
	function    string
	make        func(name, value string, r *http.Request) (httplock.KeyFunc, error)
}{
	"user": {function: "ByPrincipal", make: func(_, value string, _ *http.Request) (httplock.KeyFunc, error) {
		return httplock.ByPrincipal(func(*http.Request) (string, error) { return value, nil }), nil
	}},
	"header": {named: true, function: "ByHeader", make: func(name, value string, r *http.Request) (httplock.KeyFunc, error) {
		r.Header.Set(name, value)
		return httplock.ByHeader(name), nil
	}},
	"cookie": {named: true, function: "ByCookie", make: func(name, value string, r *http.Request) (httplock.KeyFunc, error) {
		r.Header.Set("Cookie", name+"="+value)
		return httplock.ByCookie(name), nil
	}},
	"query": {named: true, function: "ByQuery", make: func(name, value string, r *http.Request) (httplock.KeyFunc, error) {
		r.URL.RawQuery = url.Values{name: {value}}.Encode()
		return httplock.ByQuery(name), nil
	}},
	"form": {named: true, function: "ByForm", make: func(name, value string, r *http.Request) (httplock.KeyFunc, error) {
		setBody(r, "application/x-www-form-urlencoded", url.Values{name: {value}}.Encode())
		return httplock.ByForm(name), nil
	}},
	"json": {named: true, function: "ByJSON", make: func(pointer, value string, r *http.Request) (httplock.KeyFunc, error) {
		if err := jsonfield.CheckPointer(pointer); err != nil {
			return nil, err
		}
		setBody(r, "application/json", documentWith(pointer, value))
		return httplock.ByJSON(pointer), nil
	}},
	"host": {function: "ByHost", make: func(_, value string, r *http.Request) (httplock.KeyFunc, error) {
		r.Host = value
		return httplock.ByHost(), nil
	}},
	"ip": {function: "ByClientIP", make: func(_, value string, _ *http.Request) (httplock.KeyFunc, error) {
		addr, err := netip.ParseAddr(value)
		return httplock.ByClientIP(func(*http.Request) (netip.Addr, error) { return addr, nil }), err
	}},
	"constant": {function: "Constant", make: func(_, value string, _ *http.Request) (httplock.KeyFunc, error) {
		if _, err := httplock.NewKey("constant", value); err != nil { // Constant panics
			return nil, err
		}
		return httplock.Constant(value), nil
	}},
	"unscoped": {bare: true, function: "Unscoped", make: func(string, string, *http.Request) (httplock.KeyFunc, error) {
		return httplock.Unscoped(), nil
	}},
	"key": {named: true, function: "NewKey", make: func(name, value string, _ *http.Request) (httplock.KeyFunc, error) {
		return func(*http.Request) (httplock.Key, error) { return httplock.NewKey(name, value) }, nil
	}},
}

// kindsText is for the error about a part of another kind.
const kindsText = "the kinds are route, user=, path:NAME=, header:NAME=, cookie:NAME=, query:NAME=, form:NAME=, json:POINTER=, host=, ip=, " +
	"constant=, unscoped, and key:NAME= for NewKey(NAME, …)"

// newKeyPart reads a part as --part has it.
func newKeyPart(text string, route httpRoute) (keyPart, error) {
	label, value, hasValue := strings.Cut(text, "=")
	kind, name, hasName := strings.Cut(label, ":")
	wrong := func(err error) error { return fmt.Errorf("--part %s: %s", text, bareError(err)) }
	known, ok := kinds[kind]
	known.bare = known.bare || kind == "route"
	known.named = known.named || kind == "path"
	switch {
	case !ok && kind != "route" && kind != "path":
		return keyPart{}, wrong(errors.New("no key function makes this: " + kindsText))
	case hasName && !known.named, hasName && name == "", known.named && !hasName, known.bare == hasValue:
		return keyPart{}, wrong(errors.New("it is written in another way: " + kindsText))
	}
	var part keyPart
	var err error
	switch kind {
	case "route":
		part, err = route.part()
	case "path":
		part, err = route.pathPart(name, value)
	default:
		r := &http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/"}, Header: http.Header{}}
		var of httplock.KeyFunc
		if of, err = known.make(name, value, r); err == nil {
			part.key, err = of(r)
		}
		part.function = known.function
	}
	if err != nil {
		return keyPart{}, wrong(err)
	}
	part.function += argument(kind, name, value)
	return part, nil
}

// bareError returns the text of an error of the library, without what it begins with.
func bareError(err error) string { return strings.TrimPrefix(err.Error(), "holdfast: ") }

// argument returns the argument of a key function. Values of users are not repeated.
func argument(kind, name, value string) string {
	switch {
	case kind == "constant":
		return fmt.Sprintf("(%q)", value)
	case kind == "key":
		return fmt.Sprintf("(%q, …)", name)
	case name != "":
		return fmt.Sprintf("(%q)", name)
	case kind == "user", kind == "ip":
		return "(…)"
	}
	return "()"
}

func setBody(r *http.Request, mediaType, body string) {
	r.Header.Set("Content-Type", mediaType)
	r.Body = io.NopCloser(strings.NewReader(body))
	r.ContentLength = int64(len(body))
}

// documentWith returns a document with a value at a pointer. The value is in JSON; another text is a string.
func documentWith(pointer, value string) string {
	if !json.Valid([]byte(value)) {
		quoted, _ := json.Marshal(value) // a string always has a form
		value = string(quoted)
	}
	tokens := strings.Split(pointer, "/")[1:]
	for i := len(tokens) - 1; i >= 0; i-- {
		name, _ := json.Marshal(strings.NewReplacer("~0", "~", "~1", "/").Replace(tokens[i]))
		value = fmt.Sprintf("{%s:%s}", name, value)
	}
	return value
}

// httpRoute is the route of a request.
type httpRoute struct {
	method  string
	written string // as the user has written the pattern
	pattern string // in the form of http.ServeMux
	gin     bool   // it is one of gin
	parts   []string
}

// wildcardOf matches a wildcard of a pattern of http.ServeMux or chi.
var wildcardOf = regexp.MustCompile(`\{([^{}:.]+)(\.\.\.|:[^/]*)?\}`)

// patternOf returns a route in the form of http.ServeMux, and whether it is one of gin.
func patternOf(text, router string) (pattern string, gin bool, err error) {
	if !strings.Contains(text, "/") {
		return "", false, fmt.Errorf("the route %q has no slash", text)
	}
	bare := wildcardOf.ReplaceAllString(text, "{}") // colons of chi are in braces
	host, path, _ := strings.Cut(bare, "/")         // and one of a port is in front
	switch path = "/" + path; {
	case strings.ContainsAny(host, " \t"):
		return "", false, fmt.Errorf("the route %q has a method, so there are two methods", text)
	case strings.ContainsAny(path, "?#"):
		return "", false, fmt.Errorf("the route %q has a query or a fragment, which is in no key: leave it out (--part query:NAME=VALUE is for ByQuery)", text)
	case climbs(path):
		return "", false, fmt.Errorf("the route %q has a segment \"..\": guards refuse such a request with 400", text)
	}
	inside := false
	for segment := range strings.SplitSeq(path, "/") {
		switch {
		case strings.HasPrefix(segment, ":"), len(segment) > 1 && strings.HasPrefix(segment, "*"):
			gin = true
		case strings.Contains(segment, ":"):
			inside = true
		}
	}
	switch {
	case router == "nethttp":
		return text, false, nil
	case router == "gin" || gin:
		if rest, ok := strings.CutSuffix(text, "/*"); ok { // Echo's
			text = rest + "/*rest"
		}
		return ginroute.Pattern(text), true, nil
	case inside:
		return "", false, fmt.Errorf("the route %q has a colon inside of a segment, which is a parameter in gin only: add --router gin or --router nethttp", text)
	}
	return text, false, nil
}

// climbs reports whether a path has a segment "..", however it is spelled.
func climbs(path string) bool {
	if plain, err := url.PathUnescape(path); err == nil {
		path = plain
	}
	return slices.Contains(strings.Split(path, "/"), "..")
}

// part returns the part of the route.
func (t httpRoute) part() (keyPart, error) {
	if t.method == "" || t.pattern == "" {
		return keyPart{}, errors.New("the method and the route are missing, such as: http-key POST /orders")
	}
	key, err := httplock.RouteKey(t.method, t.concrete())
	if errors.Is(err, httplock.ErrNoRoute) {
		err = fmt.Errorf("the route %q has many paths, and each has a key of its own: give the path of the request in its place", t.written)
	}
	return keyPart{key, "ByRoute"}, err
}

// concrete returns the pattern, or for one with many paths the path of the request, if all of its wildcards are among the parts.
func (t httpRoute) concrete() string {
	if !strings.HasSuffix(t.pattern, "...}") {
		return t.pattern
	}
	values := make(map[string]string)
	for _, part := range t.parts {
		if label, value, found := strings.Cut(part, "="); found {
			values[label] = value
		}
	}
	known := true
	path := wildcardOf.ReplaceAllStringFunc(t.pattern, func(wildcard string) string {
		value, found := values["path:"+wildcardOf.FindStringSubmatch(wildcard)[1]]
		known = known && found
		escaped := url.PathEscape(value)
		if strings.HasSuffix(wildcard, "...}") {
			escaped = strings.ReplaceAll(escaped, "%2F", "/")
			escaped = strings.TrimPrefix(escaped, "/")
		}
		return escaped
	})
	if !known {
		return t.pattern
	}
	return path
}

// pathPart returns the part of the resource that a wildcard names.
func (t httpRoute) pathPart(name, value string) (keyPart, error) {
	if t.pattern == "" {
		return keyPart{}, fmt.Errorf("the route with this wildcard is missing, such as: http-key /cart/{%s}, or http-key POST /cart/{%[1]s} if the "+
			"guard's key has ByRoute", name)
	}
	if slices.Contains(strings.Split(value, "/"), "..") {
		return keyPart{}, errors.New(`the value has a segment "..": guards refuse such a request with 400`)
	}
	if t.gin { // gin has the slash in front of what a catch-all parameter matches, the key has not
		if strings.Contains(t.pattern, "{"+name+"...}") {
			value = strings.TrimPrefix(value, "/")
		}
	}
	key, err := httplock.PathKey(t.pattern, name, value)
	if errors.Is(err, httplock.ErrNoRoute) {
		var names []string
		for _, found := range wildcardOf.FindAllStringSubmatch(t.pattern, -1) {
			names = append(names, found[1])
		}
		err = fmt.Errorf("the route %q has no wildcard of this name, but: %q", t.written, names)
	}
	if t.gin {
		return keyPart{key, "ByParam"}, err
	}
	return keyPart{key, "ByPathValue"}, err
}
