package check

import (
	"strings"

	"github.com/holdfast-go/holdfast/lab/faults/history"
)

// deed is what a history says about one key of Once.
type deed struct {
	value    string // recorded
	recorder string
	since    int64 // when it was known to be recorded
	first    int64 // when it was first asked for
	begun    []history.Event
	released bool
}

// once: of each key at most one value is ever recorded, no run begins after that, and where failures are held no second
// one at all.
func (r *Report) once(v *view) {
	deeds := make(map[string]*deed)
	called := make(map[key]int64)
	for _, e := range v.events {
		if len(e.Names) != 1 || e.Op != "begin" && e.Op != "complete" && e.Op != "release" {
			continue
		}
		d := deeds[e.Names[0]]
		if d == nil {
			d = &deed{first: e.At, since: never}
			deeds[e.Names[0]] = d
		}
		switch {
		case e.Kind == history.Call && e.Op == "begin":
			called[key{e.By, e.Call}] = e.At
		case e.Kind == history.Call && e.Op == "release":
			d.released = true
		case e.Kind == history.Return && e.Op == "begin" && e.Err == "":
			r.begun(v, d, e, called[key{e.By, e.Call}])
		case e.Kind == history.Return && (e.Op == "complete" && e.Err == "" || e.Op == "begin" && e.Text != ""):
			r.recorded(v, d, e)
		}
	}
	r.OnceKeys = len(deeds)
}

func (r *Report) begun(v *view, d *deed, e history.Event, called int64) {
	if d.since < called {
		r.judge(v, d.first, e.At, "once", "%q was begun by %s #%d after %s was recorded", e.Names[0], e.By, e.Call, d.value)
	}
	if strings.HasSuffix(e.Strategy, " held") && !d.released && len(d.begun) > 0 {
		r.judge(v, d.first, e.At, "once", "%q, whose failures are held, was begun by %s #%d after %s #%d", e.Names[0],
			e.By, e.Call, d.begun[0].By, d.begun[0].Call)
	}
	for _, other := range d.begun {
		if other.At < called && other.Token >= e.Token {
			r.violated("token: %q was begun with token %d after %d", e.Names[0], e.Token, other.Token)
		}
	}
	d.begun = append(d.begun, e)
}

func (r *Report) recorded(v *view, d *deed, e history.Event) {
	if d.value != "" && d.value != e.Text {
		r.judge(v, d.first, e.At, "once", "%q has %q recorded, told by %s, and had %q, told by %s", e.Names[0], e.Text, e.By,
			d.value, d.recorder)
		return
	}
	if d.value == "" {
		d.value, d.recorder, d.since = e.Text, e.By, e.At
	}
}
