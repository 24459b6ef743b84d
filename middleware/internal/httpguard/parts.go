package httpguard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Parts are the texts of a key, in the order of the guard's key function, in place of a request: what an operator knows of it.
// Each key function takes its own.
type Parts struct {
	left    []string
	pattern string // of the route, once its part was taken
}

type partsKey struct{}

// PartsOf returns the texts in place of a request. It is nil for a request.
func PartsOf(r *http.Request) *Parts {
	parts, _ := r.Context().Value(partsKey{}).(*Parts)
	return parts
}

// errFewParts says that there is no text for a key function.
var errFewParts = fmt.Errorf("%w: too few parts", ErrKeyShape)

// next takes the next text.
func (p *Parts) next() (string, error) {
	if len(p.left) == 0 {
		return "", errFewParts
	}
	next := p.left[0]
	p.left = p.left[1:]
	return next, nil
}

// Key makes the key of the next text.
func (p *Parts) Key(of func(text string) (Key, error)) (Key, error) {
	text, err := p.next()
	if err != nil {
		return Key{}, err
	}
	return of(text)
}

// New makes the key of the next text, as [NewKey] does.
func (p *Parts) New(name string) (Key, error) {
	return p.Key(func(text string) (Key, error) { return NewKey(name, text) })
}

// Principal makes the key of the next text, which is a user.
func (p *Parts) Principal() (Key, error) {
	return p.Key(func(text string) (Key, error) { return PrincipalKey(text) })
}

// Client makes the key of the next text, which is the address of a client.
func (p *Parts) Client() (Key, error) {
	return p.Key(func(text string) (Key, error) {
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return Key{}, fmt.Errorf("%w: no address: %w", ErrKeyInvalid, err)
		}
		return ClientKey(addr)
	})
}

// Route makes the key of the next text, which is a method, a space and the pattern of a route.
func (p *Parts) Route() (Key, error) {
	return p.Key(func(text string) (Key, error) {
		method, pattern, found := strings.Cut(text, " ")
		if !found {
			return Key{}, fmt.Errorf(`%w: %q is no route, such as "POST /orders"`, ErrKeyInvalid, text)
		}
		p.pattern = pattern
		return RouteKey(method, pattern)
	})
}

// Path makes the key of the next text, which is the value of a wildcard of the route that was taken before.
func (p *Parts) Path(name string) (Key, error) {
	if p.pattern == "" {
		return Key{}, fmt.Errorf("%w: the wildcard %q is that of a route, but no route comes before it: use PeekKey with PathKey",
			ErrKeyShape, name)
	}
	return p.Key(func(text string) (Key, error) { return PathKey(p.pattern, name, text) })
}

// errOwnFunction says that a key function could do nothing with texts.
var errOwnFunction = errors.New("holdfast: the key function makes no key of texts: use PeekKey")

// keyOfParts has a key function make the key of texts. One of the user's may panic, because there is less than in a request.
func keyOfParts(ctx context.Context, of func(*http.Request) (Key, error), texts []string) (key Key, err error) {
	parts := &Parts{left: texts}
	defer func() {
		if r := recover(); r != nil {
			key, err = Key{}, fmt.Errorf("%w: it panicked: %v", errOwnFunction, r)
		}
	}()
	r := (&http.Request{Header: make(http.Header), URL: new(url.URL), Body: http.NoBody}).WithContext(context.WithValue(ctx, partsKey{}, parts))
	key, err = of(r)
	switch {
	case err != nil && len(parts.left) > 0 && !errors.Is(err, ErrKeyShape):
		return Key{}, fmt.Errorf("%w: %w", errOwnFunction, err)
	case err != nil:
		return Key{}, err
	case len(parts.left) > 0:
		return Key{}, fmt.Errorf("%w: %d parts more than it has", ErrKeyShape, len(parts.left))
	}
	return key, nil
}
