package main

import (
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/svg"
)

// drawnPackage is a package of core in the drawing of the imports.
type drawnPackage struct {
	name, what  string
	x, y, width float64
}

const packageHeight = 46

// drawnPackages are the packages. Each stands above those that it imports.
var drawnPackages = []drawnPackage{
	{"core", "public API, leases, Once, Multi", 20, 16, 480},
	{"quorum", "Redlock: a majority", 20, 92, 152},
	{"acquire", "ask, wait, release", 184, 92, 152},
	{"inventory", "lists, who holds", 348, 92, 152},
	{"script", "locks and records in Redis: keys, scripts, strategies", 20, 168, 480},
	{"transport", "commands to Redis, subscriptions, settings", 20, 244, 480},
	{"keepalive", "renewal, end of a lease, clock", 20, 320, 480},
}

// drawnArrow is an import, drawn as a vertical arrow at x.
type drawnArrow struct {
	from, to string
	x        float64
}

// drawnArrows are the imports in the table of docs/architecture.md, without those that other arrows imply.
var drawnArrows = []drawnArrow{
	{"core", "quorum", 96},
	{"core", "acquire", 260},
	{"core", "inventory", 424},
	{"quorum", "script", 96},
	{"acquire", "script", 260},
	{"inventory", "script", 424},
	{"script", "transport", 260},
	{"transport", "keepalive", 260},
}

// imports draws which package of core imports which.
func imports() *svg.Picture {
	p := svg.New(382, "The imports of the packages of core", importsText())
	at := make(map[string]drawnPackage)
	for _, r := range drawnPackages {
		at[r.name] = r
		p.Rect(r.x, r.y, r.width, packageHeight, svg.Plain)
		p.Text(r.x+r.width/2, r.y+20, svg.Middle, r.name)
		p.Note(r.x+r.width/2, r.y+37, svg.Middle, r.what)
	}
	for _, a := range drawnArrows {
		p.Arrow(a.x, at[a.from].y+packageHeight, a.x, at[a.to].y)
	}
	return p
}

// importsText says the arrows in words, a sentence for each package with imports.
func importsText() string {
	var sentences []string
	for _, r := range drawnPackages {
		var imported []string
		for _, a := range drawnArrows {
			if a.from == r.name {
				imported = append(imported, a.to)
			}
		}
		if len(imported) > 0 {
			slices.Sort(imported)
			sentences = append(sentences, r.name+" imports "+strings.Join(imported, ", ")+".")
		}
	}
	return strings.Join(sentences, " ")
}
