package httpguard

import (
	"errors"
	"net/http"
	"time"
)

// BufferRequest reads the body of r ahead with [Buffer], for adapters whose framework has an http.Request; r is a copy,
// whose Body it replaces. key is that of the request: the memory of the body counts as that of its owner. A larger body is
// read up to the limit, or refused with [ErrBodyTooLarge]. If its Content-Length says so, it is refused unread.
//
// If bodies are compared, and this one was read before, the form that net/http has parsed of it takes its place. Without
// one the error is [ErrBodyRead], if the body is known not to have been empty.
//
// Why a client that waits for 100 Continue is asked for its body too: otherwise it would hold the key of the request for as
// long as it likes.
func (g *guard) BufferRequest(r *http.Request, key Key) error {
	limit, strict := g.BodyLimit()
	if admitted, ok := r.Body.(*Body); ok && admitted.memory == g.bodies {
		if err := admitted.own(ownerOf(key, admitted.owner)); err != nil {
			return err
		}
	}
	switch {
	case limit == 0:
		return nil
	case r.Method == http.MethodConnect: // a tunnel, which both sides use at the same time
		return nil
	case r.ContentLength > limit && strict:
		return largerThan(limit)
	case r.Body == nil, r.Body == http.NoBody:
		return bufferNone(r, limit, strict)
	}
	body, err := Buffer(r.Context(), r.Body, limit)
	if err != nil {
		return err
	}
	if strict {
		if err := body.checkWhole(r, limit); err != nil {
			return err
		}
	}
	r.Body = body
	return nil
}

// bufferNone is for a request without a body, which a program in front may have taken away.
func bufferNone(r *http.Request, limit int64, strict bool) error {
	none := &Body{source: http.NoBody, whole: true}
	if !strict {
		return nil
	}
	if err := none.recall(r, limit); err != nil {
		return err
	}
	if none.parsed != nil {
		r.Body = none
	}
	return nil
}

// checkWhole refuses a body of which not all can be compared: half of one is not to be compared with another one.
func (b *Body) checkWhole(r *http.Request, limit int64) error {
	switch {
	case b.TooLarge() != nil:
		return b.TooLarge()
	case int64(len(b.begin)) > limit:
		return largerThan(limit)
	case b.usedUp(), b.begun(r):
		return b.recall(r, limit)
	case b.err != nil:
		return errors.Join(ErrBodyUnreadable, b.err)
	}
	return nil
}

// Admit has the bodies that are buffered for r count against the memory of the guard, until release is called, which the
// caller must do when the request has ended. r is a copy, whose Body it replaces.
func (g *guard) Admit(r *http.Request) (release func()) {
	if r.Body == nil || r.Body == http.NoBody || r.Method == http.MethodConnect {
		return func() {}
	}
	if _, counted := r.Body.(*Body); counted { // by a guard around this one
		return func() {}
	}
	body := &Body{source: r.Body, memory: g.bodies, owner: addressOf(r)}
	r.Body = body
	return body.release
}

// RequestOf returns the [Request] of r for the engine, with that key and that time limit for the answer. Its body
// counts if it was buffered: see [Buffer].
func RequestOf(r *http.Request, key Key, by time.Time) Request {
	route, _ := parsePattern(r.Pattern)
	payload := Payload{
		Method: r.Method, Host: route.host, Target: targetOf(r).EscapedPath(), Path: r.URL.EscapedPath(),
		Query: r.URL.RawQuery, ContentType: r.Header.Get("Content-Type"),
		ContentEncoding: codingsOf(r.Header["Content-Encoding"]),
	}
	if body, ok := r.Body.(*Body); ok {
		payload.Body = body.compared()
	}
	return Request{Key: key, Payload: payload, Pattern: r.Pattern, AnswerBy: by, Header: r.Header, owner: ownerOf(key, addressOf(r))}
}
