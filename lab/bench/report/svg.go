package report

import (
	"fmt"
	"math"
	"strings"
)

// point is one of a line, in the units of the axes.
type point struct{ x, y float64 }

// line is one contestant in a picture.
type line struct {
	name   string
	colour int // the same in all pictures
	points []point
}

// axis maps values to a length on the paper.
type axis struct {
	label    string
	low, top float64
	ticks    []float64
	text     func(float64) string
	linear   bool // instead of logarithmic
}

func (a axis) place(v, from, to float64) float64 {
	v = min(max(v, a.low), a.top)
	share := (v - a.low) / (a.top - a.low)
	if !a.linear {
		share = math.Log(v/a.low) / math.Log(a.top/a.low)
	}
	return from + share*(to-from)
}

// chart draws lines over two axes. Its colours are told apart on light and on dark paper; text and axes take theirs
// from what the reader prefers.
type chart struct {
	title string
	x, y  axis
	lines []line
}

const (
	width                   = 520 // so that text is legible on a phone
	left, right, upper, low = 76, 500, 62, 330
	legend                  = low + 72 // its first line, in two columns
	legendStep              = 22
	legendColumn            = 250
)

var colours = []string{"#2f81f7", "#2da44e", "#c9820a", "#e5534b", "#8b949e", "#a371f7"}

// style has a background of its own, since a page may be dark while the reader's system prefers light colours.
const style = `<style>
text { font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 } .paper { fill: #ffffff }
.grid { stroke: #8886; stroke-width: 1 } polyline { fill: none; stroke-width: 2 }
@media (prefers-color-scheme: dark) { text { fill: #f0f6fc } .paper { fill: #0d1117 } }
</style>
<rect class="paper" width="100%" height="100%" rx="6"/>
`

func (c chart) svg() string {
	var b strings.Builder
	height := legend + legendStep*((len(c.lines)+1)/2)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img"`+
		` aria-label="%s">`+"\n", width, height, width, height, c.title)
	b.WriteString(style)
	fmt.Fprintf(&b, `<text class="title" x="14" y="25">%s</text><text x="14" y="47">%s</text>`+"\n", c.title, c.y.label)
	for _, v := range c.x.ticks {
		x := c.x.place(v, left, right)
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, x, upper, x, low)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x, low+18, c.x.text(v))
	}
	for _, v := range c.y.ticks {
		y := c.y.place(v, low, upper)
		fmt.Fprintf(&b, `<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`, left, y, right, y)
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left-8, y+4, c.y.text(v))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (left+right)/2, low+42, c.x.label)
	for i, l := range c.lines {
		c.draw(&b, i, l)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// draw adds a line and its place in the legend. Some are dashed, for those who do not see colours.
func (c chart) draw(b *strings.Builder, i int, l line) {
	var points []string
	for _, p := range l.points {
		points = append(points, fmt.Sprintf("%.1f,%.1f", c.x.place(p.x, left, right), c.y.place(p.y, low, upper)))
	}
	dashes := []string{"", "6 3", "2 3"}[l.colour%3]
	stroke := fmt.Sprintf(`stroke="%s" stroke-dasharray="%s"`, colours[l.colour%len(colours)], dashes)
	fmt.Fprintf(b, `<polyline %s points="%s"/>`, stroke, strings.Join(points, " "))
	x, y := 14+legendColumn*(i%2), legend+legendStep*(i/2)
	fmt.Fprintf(b, `<polyline %s points="%d,%d %d,%d"/>`, stroke, x, y, x+28, y)
	fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`+"\n", x+34, y+4, l.name)
}
