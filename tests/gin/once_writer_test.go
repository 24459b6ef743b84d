package gin_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// heldBack is how much of an answer is held back in these tests.
const heldBack = 3000

// ending is a handler and what a second request gets: the first answer, with its body or without.
type ending struct {
	handler gin.HandlerFunc
	omitted bool // the body
	refused bool // there is nothing to replay
}

// endings are handlers of all kinds.
func endings() map[string]ending {
	all := endingsByHeader()
	maps.Copy(all, endingsByBody())
	maps.Copy(all, endingsByConnection())
	return all
}

// endingsByHeader answer with a status and header fields, of which some come too late.
func endingsByHeader() map[string]ending {
	return map[string]ending{
		"nothing": {handler: func(*gin.Context) {}},
		"abort":   {handler: func(c *gin.Context) { c.Abort() }},
		"header":  {handler: func(c *gin.Context) { c.Header("X-Done", "1") }},
		"status":  {handler: func(c *gin.Context) { c.Status(http.StatusNoContent) }},
		"abort with status": {handler: func(c *gin.Context) {
			c.AbortWithStatus(http.StatusUnprocessableEntity)
		}},
		"status twice": {handler: func(c *gin.Context) {
			c.Status(http.StatusAccepted)
			c.Status(-1)
			c.Status(http.StatusCreated)
			_, _ = c.Writer.WriteString("created")
			c.Status(http.StatusTeapot)
		}},
		"header now": {handler: func(c *gin.Context) {
			c.Header("X-Early", "1")
			c.Status(http.StatusAccepted)
			c.Writer.WriteHeaderNow()
			c.Header("X-Late", "1")
			c.Status(http.StatusTeapot)
		}},
		"header now, too much": {omitted: true, handler: func(c *gin.Context) {
			c.Header("X-Early", "1")
			c.Writer.WriteHeaderNow()
			c.Header("X-Late", "1")
			_, _ = c.Writer.WriteString(strings.Repeat("x", heldBack+1))
		}},
	}
}

// endingsByBody answer with a body.
func endingsByBody() map[string]ending {
	return map[string]ending{
		"JSON":           {handler: func(c *gin.Context) { c.JSON(http.StatusCreated, gin.H{"id": 7}) }},
		"JSON, no body":  {handler: func(c *gin.Context) { c.JSON(http.StatusNoContent, gin.H{"id": 7}) }},
		"string":         {handler: func(c *gin.Context) { c.String(http.StatusOK, "%d pens", 7) }},
		"data":           {handler: func(c *gin.Context) { c.Data(http.StatusOK, "image/png", []byte("\x89PNG")) }},
		"guessed type":   {handler: func(c *gin.Context) { _, _ = c.Writer.Write([]byte("%PDF-1.4")) }},
		"empty write":    {handler: func(c *gin.Context) { _, _ = c.Writer.Write(nil) }},
		"file":           {handler: func(c *gin.Context) { c.File("testdata/pens.txt") }},
		"no file":        {handler: func(c *gin.Context) { c.File("testdata/none.txt") }},
		"redirect":       {handler: func(c *gin.Context) { c.Redirect(http.StatusSeeOther, "/orders/7") }},
		"copy":           {handler: func(c *gin.Context) { _, _ = io.Copy(c.Writer, strings.NewReader("copied")) }},
		"as much":        {handler: fill(heldBack, 1)},
		"too much":       {omitted: true, handler: fill(heldBack+1, 1)},
		"too much, slow": {omitted: true, handler: fill(1, heldBack+1)},
	}
}

// endingsByConnection flush, stream or take over the connection.
func endingsByConnection() map[string]ending {
	return map[string]ending{
		"flush": {handler: func(c *gin.Context) {
			c.Status(http.StatusAccepted)
			c.Writer.Flush()
			c.Header("X-Late", "1")
			c.String(http.StatusTeapot, "flushed")
		}},
		"stream": {handler: func(c *gin.Context) {
			n := 0
			c.Stream(func(w io.Writer) bool {
				n++
				_, _ = fmt.Fprint(w, n)
				return n < 3
			})
		}},
		"events": {handler: func(c *gin.Context) {
			c.SSEvent("pen", "ready")
			c.Writer.Flush()
		}},
		"wrong length": {refused: true, handler: func(c *gin.Context) {
			c.Header("Content-Length", "3")
			_, _ = c.Writer.WriteString("pens")
		}},
		"hijack": {refused: true, handler: func(c *gin.Context) {
			conn, _, err := c.Writer.Hijack()
			if err != nil {
				panic(err)
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
		}},
		"deadlines": {handler: func(c *gin.Context) {
			rc := http.NewResponseController(c.Writer)
			var never time.Time
			c.String(http.StatusOK, "%v %v", rc.SetReadDeadline(never), rc.SetWriteDeadline(never))
		}},
	}
}

// fill returns a handler that writes that many bytes, so many times.
func fill(bytes, times int) gin.HandlerFunc {
	return func(c *gin.Context) {
		for range times {
			_, _ = c.Writer.WriteString(strings.Repeat("x", bytes))
		}
	}
}

// The client, and the middlewares on both sides of the guard, see what they would see without it.
func TestGuardIsNotSeen(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	for name, test := range endings() {
		for _, method := range []string{http.MethodPost, http.MethodHead} {
			for kind, guard := range recording(locks, core.WithMaxValue(heldBack), httplock.WithMethods(method)) {
				t.Run(kind+", "+name+", "+method, func(t *testing.T) {
					t.Parallel()
					use := func(r *http.Request) { r.Method = method }
					plain, wantInside, wantOutside := watched(nextOnly, test.handler, method)
					want := order(t, serve(t, plain), "k", use)
					guarded, inside, outside := watched(guard, test.handler, method)
					srv := serve(t, guarded)
					got := order(t, srv, "k", use)
					sameAnswer(t, got, want)
					sameSeen(t, "inside", inside, wantInside)
					sameSeen(t, "outside", outside, wantOutside)
					if !test.refused && (want.status < 400 || kind == "Idempotent") {
						again := order(t, srv, "k", use)
						if test.omitted && method == http.MethodPost {
							again.want(t, http.StatusConflict)
						} else {
							checkReplay(t, again, want)
						}
						if o := receive(t, outside, "the replay"); o.status != again.status {
							t.Errorf("status %d seen outside, the client got %d", o.status, again.status)
						}
					}
				})
			}
		}
	}
}

// watched returns an engine with that guard and handler, and what is seen inside and outside the guard.
func watched(guard, handler gin.HandlerFunc, method string) (*gin.Engine, <-chan seen, <-chan seen) {
	outer, outside := look()
	inner, inside := look()
	engine := gin.New()
	engine.Handle(method, "/", outer, recovery(), guard, inner, handler)
	return engine, inside, outside
}

func sameSeen(t testing.TB, where string, got, want <-chan seen) {
	t.Helper()
	g, w := receive(t, got, "what is seen "+where), receive(t, want, "what is seen without guard")
	if g != w {
		t.Errorf("%s: %+v, without guard %+v", where, g, w)
	}
}

func sameAnswer(t testing.TB, got, want answer) {
	t.Helper()
	for _, a := range []*answer{&got, &want} {
		a.header = a.header.Clone() // want's header may be compared with several answers at once
		a.header.Del("Date")
	}
	if (got.err == nil) != (want.err == nil) || got.status != want.status || got.body != want.body {
		t.Errorf("status %d, body %.60q, error %v; without guard %d, %.60q, %v",
			got.status, got.body, got.err, want.status, want.body, want.err)
	}
	if !reflect.DeepEqual(got.header, want.header) {
		t.Errorf("header\n%v, without guard\n%v", got.header, want.header)
	}
}

// checkReplay compares a replay with the first answer.
func checkReplay(t testing.TB, got, first answer) {
	t.Helper()
	want := maps.Clone(first.header)
	want.Set("Idempotency-Replayed", "true")
	want.Set("Cache-Control", "no-store")
	got.wantReplay(t, first.status, first.body)
	for _, h := range []http.Header{got.header, want} {
		h.Del("Content-Length") // the server's own
		h.Del("Date")
	}
	if !reflect.DeepEqual(got.header, want) {
		t.Errorf("header\n%v, want\n%v", got.header, want)
	}
}
