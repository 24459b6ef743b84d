package main

import (
	"strings"
	"testing"
	"time"
)

// The picture shows the figures of both sales, and no text is cut off however they come out.
func TestPictureShowsBothSales(t *testing.T) {
	t.Parallel()
	outcome := func(a audit) *report {
		return &report{config: defaults, audit: a, tally: &tally{took: 12 * time.Second}}
	}
	guarded := outcome(audit{start: 200, orders: 200})
	for name, baseline := range map[string]audit{
		"broken":  {start: 200, orders: 1215, doubled: 407, twice: 396},
		"nothing": {start: 200},
		"all":     {start: 200, orders: 800_000, doubled: 800_000, twice: 800_000},
	} {
		p := draw(guarded, outcome(baseline))
		if texts := p.Outside(); len(texts) > 0 {
			t.Errorf("%s: does not fit: %q", name, texts)
		}
		if name != "broken" {
			continue
		}
		for _, figure := range []string{">200<", ">1215<", ">1015<", ">407<", ">396<", ">0<", "12.0 s"} {
			if !strings.Contains(p.String(), figure) {
				t.Errorf("the picture lacks %s:\n%s", figure, p)
			}
		}
	}
}
