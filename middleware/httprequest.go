package middleware

import (
	"errors"
	"net/http"
	"time"
)

// BufferRequest reads the body of r ahead with [Buffer], if that is of use, for adapters whose framework has an
// http.Request; r is a copy, whose Body it replaces. What is known to be too large is left to the handler unread,
// or refused with [ErrBodyTooLarge]; a client that waits for 100 Continue then sends it only if the request may run.
func (g *guard) BufferRequest(r *http.Request) error {
	limit, strict := g.BodyLimit()
	switch {
	case r.Body == nil, r.Body == http.NoBody, limit == 0:
		return nil
	case r.Method == http.MethodConnect: // a tunnel, which both sides use at the same time
		return nil
	case r.ContentLength > limit && strict:
		return ErrBodyTooLarge
	case r.ContentLength > limit:
		return nil
	}
	body, err := Buffer(r.Context(), r.Body, limit)
	switch {
	case errors.Is(err, ErrBodyMemory) && !strict:
		return nil // the handler reads on where the buffer ends
	case err != nil:
		return err
	}
	if begin, _ := body.Bytes(); strict && int64(len(begin)) > limit {
		return ErrBodyTooLarge
	}
	if strict && body.err != nil { // half a body is not to be compared with another one
		var large *http.MaxBytesError
		if errors.As(body.err, &large) {
			return ErrBodyTooLarge
		}
		return errors.Join(ErrBodyUnreadable, body.err)
	}
	r.Body = body
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
	body := &Body{source: r.Body, memory: g.bodies}
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
	}
	if body, ok := r.Body.(*Body); ok {
		payload.Body, _ = body.Bytes()
	}
	return Request{Key: key, Payload: payload, AnswerBy: by, Header: r.Header}
}
