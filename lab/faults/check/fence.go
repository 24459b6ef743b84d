package check

import (
	"github.com/holdfast-go/holdfast/lab/faults/history"
)

// fence: the register takes tokens in order only, only such as were granted, and refuses nobody whose lease is valid.
func (r *Report) fence(v *view) {
	highest := make(map[string]int64)
	for _, e := range v.events {
		if e.Kind != history.Write || e.Unfenced {
			continue
		}
		r.Writes++
		name, l := e.Names[0], v.byKey[key{e.By, e.Call}]
		if l == nil || l.token != e.Token {
			r.violated("fence: %q was written by %s with token %d, which it was not granted", name, e.By, e.Token)
			continue
		}
		if !e.Refused {
			if e.Token < highest[name] {
				r.violated("fence: %q took token %d of %s after %d", name, e.Token, e.By, highest[name])
			}
			highest[name] = max(highest[name], e.Token)
			continue
		}
		r.Refused++
		if e.At < l.to() {
			r.judge(v, l.called, e.At, "refusal", "%q refused %v at %s, which was valid", name, l, clock(e.At))
		}
	}
}

// left: who has closed its client leaves no goroutine, and whoever is gone no key that does not expire.
func (r *Report) left(v *view) {
	final := never
	for _, e := range v.events {
		switch {
		case e.Kind == history.Final:
			final = e.At
		case e.Kind == history.Left && e.Value > 0:
			r.violated("left: %s has %d goroutines after Close", e.By, e.Value)
		case e.Kind == history.Left && e.Err != "" && e.At > final:
			r.violated("left: Close of %s: %s", e.By, e.Err)
		case e.Kind == history.Key:
			r.violated("left: key %q with %d ms to live: %s", e.Name, e.Value, e.Detail)
		}
	}
}
