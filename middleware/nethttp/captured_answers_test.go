package httplock_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// handled is a handler that answers as a client would see it without a guard, and what is recorded of it.
type handled struct {
	name      string
	method    string // POST if empty
	onlyHTTP1 bool
	handler   http.HandlerFunc
	record    httplock.Response
}

const textPlain = "text/plain; charset=utf-8"

func media(name string) http.Header { return http.Header{"Content-Type": {name}} }

// answers are handlers of all kinds.
func answers() []handled {
	var all []handled
	for _, list := range [][]handled{ordinary(), headed(), bodiless(), switched(), sized(), passed(), trailing()} {
		all = append(all, list...)
	}
	return all
}

// ordinary are handlers that answer in the usual ways.
func ordinary() []handled {
	return []handled{
		{name: "plain", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, "{}")
		}, record: httplock.Response{Status: 202, Header: media("application/json"), Body: []byte("{}")}},
		{name: "implicit 200", handler: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "<html>")
		}, record: httplock.Response{Status: 200, Header: media("text/html; charset=utf-8"), Body: []byte("<html>")}},
		{name: "nothing", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Done", "1")
		}, record: httplock.Response{Status: 200, Header: http.Header{"X-Done": {"1"}}}},
		{name: "empty write", handler: func(w http.ResponseWriter, _ *http.Request) {
			n, err := w.Write(nil)
			w.WriteHeader(http.StatusTeapot)
			w.Header().Set("X-Wrote", fmt.Sprint(n, err))
		}, record: httplock.Response{Status: 200}},
		{name: "type known late", handler: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("%PDF"))
			_, _ = w.Write([]byte("-1.4"))
		}, record: httplock.Response{Status: 200, Header: media("application/pdf"), Body: []byte("%PDF-1.4")}},
		{name: "deadlines", handler: func(w http.ResponseWriter, _ *http.Request) {
			rc := http.NewResponseController(w)
			never := time.Time{}
			_, _ = fmt.Fprint(w, rc.SetReadDeadline(never), rc.SetWriteDeadline(never), rc.EnableFullDuplex())
		}, record: httplock.Response{Status: 200, Header: media(textPlain), Body: []byte("<nil> <nil> <nil>")}},
		{name: "deadline over", handler: func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0))
			_, _ = io.WriteString(w, "x")
		}, record: httplock.Response{Status: 200, Header: media(textPlain), Body: []byte("x")}},
	}
}

// headed are handlers whose header is not plain.
func headed() []handled {
	return []handled{
		{name: "created", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/orders/7")
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "secret"})
			w.WriteHeader(http.StatusCreated)
		}, record: httplock.Response{Status: 201, Header: http.Header{"Location": {"/orders/7"}}}},
		{name: "outer fields", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Add("Vary", "Accept")
			w.Header().Del("X-Request-Id")
			http.Error(w, "no", http.StatusNotFound)
		}, record: httplock.Response{Status: 404, Body: []byte("no\n"), Header: http.Header{
			"Content-Type": {textPlain}, "Vary": {"Origin", "Accept"}, "X-Content-Type-Options": {"nosniff"},
		}}},
		{name: "status twice", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusConflict)
			w.WriteHeader(http.StatusOK)
			w.WriteHeader(http.StatusEarlyHints)
		}, record: httplock.Response{Status: 409}},
		{name: "header after status", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Early", "1")
			w.Header().Set("X-Stays", "1")
			w.WriteHeader(http.StatusOK)
			w.Header().Set("X-Early", "2")
			w.Header().Set("X-Late", "1")
			w.Header().Del("X-Stays")
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "x")
		}, record: httplock.Response{Status: 200, Body: []byte("x"), Header: http.Header{
			"X-Early": {"1"}, "X-Stays": {"1"}, "Content-Type": {textPlain},
		}}},
		{name: "no type", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			_, _ = io.WriteString(w, "<html>")
		}, record: httplock.Response{Status: 200, Header: http.Header{"Content-Type": nil}, Body: []byte("<html>")}},
		{name: "encoded", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			_, _ = io.WriteString(w, "<html>")
		}, record: httplock.Response{
			Status: 200, Header: http.Header{"Content-Encoding": {"br"}}, Body: []byte("<html>"),
		}},
	}
}

// bodiless are handlers whose answers have no body.
func bodiless() []handled {
	refused := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			if _, err := io.WriteString(w, "x"); err != http.ErrBodyNotAllowed {
				panic(err)
			}
		}
	}
	return []handled{
		{name: "204", handler: refused(204), record: httplock.Response{Status: 204}},
		{name: "304", handler: refused(304), record: httplock.Response{Status: 304}},
		{name: "204, flushed", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(204)
			w.(http.Flusher).Flush()
		}, record: httplock.Response{Status: 204}},
		{name: "HEAD", method: http.MethodHead, handler: func(w http.ResponseWriter, _ *http.Request) {
			n, err := io.WriteString(w, "<html>")
			if n != 6 || err != nil {
				panic(err)
			}
		}, record: httplock.Response{Status: 200, Header: media("text/html; charset=utf-8")}},
		{
			name: "HEAD, nothing", method: http.MethodHead, handler: func(http.ResponseWriter, *http.Request) {},
			record: httplock.Response{Status: 200},
		},
		{name: "HEAD, length", method: http.MethodHead, handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1234567")
			w.WriteHeader(http.StatusOK)
		}, record: httplock.Response{Status: 200}},
		{name: "HEAD, large", method: http.MethodHead, handler: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(bytes.Repeat([]byte("x"), 10*heldBack))
		}, record: httplock.Response{Status: 200, Header: media(textPlain)}},
	}
}

// switched are handlers that answer before the answer, or take over the connection.
func switched() []handled {
	return []handled{
		{name: "early hints", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "</style.css>")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Set("Link", "</more.css>")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
			_, _ = io.WriteString(w, "x")
		}, record: httplock.Response{Status: 200, Header: media(textPlain), Body: []byte("x")}},
		{name: "101", onlyHTTP1: true, handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "x")
			w.WriteHeader(http.StatusSwitchingProtocols)
		}, record: httplock.Response{Status: 101, Omitted: true}},
		{name: "hijacked", onlyHTTP1: true, handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Never", "sent")
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			defer conn.Close()
			w.WriteHeader(http.StatusTeapot)
			_, one := w.Write([]byte("x"))
			_, two := io.WriteString(w, "x")
			_, three := w.(io.ReaderFrom).ReadFrom(strings.NewReader("x"))
			body := fmt.Sprint(one == http.ErrHijacked, two == http.ErrHijacked, three == http.ErrHijacked)
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 202 Accepted\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		}, record: httplock.Response{Omitted: true}},
		{name: "hijacked late", onlyHTTP1: true, handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "4")
			w.WriteHeader(http.StatusCreated)
			conn, buffered, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			defer conn.Close()
			_, _ = buffered.WriteString("late")
			_ = buffered.Flush()
		}, record: httplock.Response{Status: 201, Omitted: true}},
	}
}
