package inspector

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// streamLimit bounds a stream. The browser connects again by itself, and passes the login of the service anew.
	streamLimit = 5 * time.Minute
	// aliveInterval is how often a stream without news says that it is there, for proxies that close idle connections.
	aliveInterval = 15 * time.Second
	// writeLimit bounds one write to a viewer that does not read.
	writeLimit = 10 * time.Second
)

// serveEvents answers with a stream of events: "live" has the changing part of the page, "same" says that this part was read again
// and has not changed, and "problem" says why it could not be read. Each failed read is a "problem".
func (h *Handler) serveEvents(w http.ResponseWriter, r *http.Request, p page, acts bool) {
	q := p.asked(r.URL.Query())
	key := fmt.Sprint(p.template, "?", q.Encode(), " ", acts)
	read := func(ctx context.Context) event { return h.readEvent(ctx, p, q, acts) }
	v, leave, ok := h.live.join(key, acts || h.config.authorise == nil, read)
	if !ok && !p.acts { // whose requests were not asked for an operator
		if _, operates := h.operator(r); operates {
			v, leave, ok = h.live.join(key, true, read)
		}
	}
	if !ok {
		// After 204 a browser does not reconnect.
		w.WriteHeader(http.StatusNoContent)
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for nginx, which would collect the events
	stream(r.Context(), h.lifetime, w, v)
}

// stream writes the events of a viewer until one of the contexts ends.
func stream(ctx, lifetime context.Context, w http.ResponseWriter, v *viewer) {
	control := http.NewResponseController(w)
	send := func(text string) bool {
		_ = control.SetWriteDeadline(time.Now().Add(writeLimit)) // the WriteTimeout of the server would end the stream
		_, err := io.WriteString(w, text)
		return err == nil && control.Flush() == nil
	}
	end := time.NewTimer(streamLimit)
	defer end.Stop()
	alive := time.NewTicker(aliveInterval)
	defer alive.Stop()
	var shown *event // the state that is up to date on the page; nil before the first one, and after a problem
	for ok := send("retry: 2000\n\n"); ok; {
		select {
		case e := <-v.news:
			text := e.String()
			if shown != nil && *e == *shown {
				text = same
			}
			if shown = e; e.problem {
				shown = nil
			}
			ok = send(text)
		case <-alive.C:
			ok = send(": alive\n\n")
		case <-end.C:
			return
		case <-ctx.Done():
			return
		case <-lifetime.Done():
			return
		}
	}
}

// same stands for a "live" event that equals the one before it. Its data is not empty: browsers drop an event without data.
const same = "event: same\ndata: same\n\n"

// String returns the event as the format of server-sent events has it.
func (e *event) String() string {
	kind := "live"
	if e.problem {
		kind = "problem"
	}
	return "event: " + kind + "\ndata: " + strings.ReplaceAll(e.html, "\n", "\ndata: ") + "\n\n"
}

// readEvent reads a page, and renders the part of it that changes.
func (h *Handler) readEvent(ctx context.Context, p page, q url.Values, acts bool) event {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	data, err := p.read(ctx, h, q)
	if err != nil {
		return event{html: problemOf(err).Title, problem: true}
	}
	return event{html: render(p.template, "live", shown{Title: p.title, Template: p.template, Acts: acts, Live: true, Data: data})}
}
