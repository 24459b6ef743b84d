// Package svg writes the diagrams of the documentation as SVG: boxes, lines, arrows and text, in colours for light and
// for dark screens. Text stays text, and no font is loaded.
//
// Pictures are [Width] wide, so that their text is still legible on a phone.
package svg

import (
	"fmt"
	"html"
	"strings"
)

// Width is the width of all pictures.
const Width = 520

// Tone is the colour of a shape, by what the shape means.
type Tone string

// The tones.
const (
	Plain Tone = "plain"
	Held  Tone = "held" // a lease that is valid, a run in progress
	Good  Tone = "good"
	Wait  Tone = "wait" // something that is waiting, or not known
	Bad   Tone = "bad"
)

// Anchor says which point of a text its position is.
type Anchor string

// The anchors.
const (
	Start  Anchor = "start"
	Middle Anchor = "middle"
	End    Anchor = "end"
)

// Picture is a drawing. Later shapes lie over earlier ones.
type Picture struct {
	title, description string
	height             float64
	body               strings.Builder
	texts              []label
}

// label is where a text stands, for [Picture.Outside].
type label struct {
	x, y   float64
	anchor Anchor
	size   float64
	text   string
}

// New returns an empty picture. Screen readers read its title and description.
func New(height float64, title, description string) *Picture {
	return &Picture{title: title, description: description, height: height}
}

// Sizes of text, in pixels.
const (
	normal = 15
	small  = 13
)

// Heading writes a bold line.
func (p *Picture) Heading(x, y float64, text string) { p.write(x, y, Start, normal, "b", text) }

// Text writes one line.
func (p *Picture) Text(x, y float64, anchor Anchor, text string) {
	p.write(x, y, anchor, normal, "", text)
}

// Note writes one line in small, muted letters.
func (p *Picture) Note(x, y float64, anchor Anchor, text string) {
	p.write(x, y, anchor, small, "note", text)
}

// Signal writes one small line in the colour of a tone.
func (p *Picture) Signal(x, y float64, anchor Anchor, tone Tone, text string) {
	p.write(x, y, anchor, small, "on-"+string(tone), text)
}

func (p *Picture) write(x, y float64, anchor Anchor, size float64, class, text string) {
	p.texts = append(p.texts, label{x, y, anchor, size, text})
	if class != "" {
		class = fmt.Sprintf(` class="%s"`, class)
	}
	if anchor != Start {
		class += fmt.Sprintf(` text-anchor="%s"`, anchor)
	}
	fmt.Fprintf(&p.body, `<text x="%g" y="%g"%s>%s</text>`+"\n", x, y, class, html.EscapeString(text))
}

// Rect draws a rectangle with round corners.
func (p *Picture) Rect(x, y, width, height float64, tone Tone) {
	fmt.Fprintf(&p.body, `<rect class="%s" x="%g" y="%g" width="%g" height="%g" rx="5"/>`+"\n", tone, x, y, width, height)
}

// Box draws a rectangle with lines of text in its middle.
func (p *Picture) Box(x, y, width, height float64, tone Tone, lines ...string) {
	p.Rect(x, y, width, height, tone)
	const leading = 18
	baseline := y + height/2 + 5 - leading*float64(len(lines)-1)/2
	for i, line := range lines {
		p.Text(x+width/2, baseline+leading*float64(i), Middle, line)
	}
}

// Dashed draws a dashed line, for a limit or for the time of a participant.
func (p *Picture) Dashed(x1, y1, x2, y2 float64) { p.path(` stroke-dasharray="4 4"`, x1, y1, x2, y2) }

// Grid draws a faint line, behind other shapes.
func (p *Picture) Grid(x1, y1, x2, y2 float64) { p.path(` class="grid"`, x1, y1, x2, y2) }

// Arrow draws a line through points, given as x and y in turn, with a head at the last one.
func (p *Picture) Arrow(points ...float64) { p.path(` marker-end="url(#head)"`, points...) }

func (p *Picture) path(attributes string, points ...float64) {
	var d strings.Builder
	for i := 0; i+1 < len(points); i += 2 {
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&d, "%s%g %g", command, points[i], points[i+1])
	}
	fmt.Fprintf(&p.body, `<path d="%s"%s/>`+"\n", d.String(), attributes)
}

// String returns the SVG file.
func (p *Picture) String() string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%g" viewBox="0 0 %d %g" role="img"`+
		` aria-labelledby="title desc">`+"\n<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n%s%s</svg>\n",
		Width, p.height, Width, p.height, html.EscapeString(p.title), html.EscapeString(p.description),
		style, p.body.String())
}

// Width of a letter, as a share of the size of the font. It is the width of wide fonts, so that narrow ones fit too.
const widest = 0.59

// Outside returns the texts that do not fit into the picture in a wide font.
func (p *Picture) Outside() (texts []string) {
	for _, t := range p.texts {
		width := float64(len([]rune(t.text))) * t.size * widest
		left := t.x
		switch t.anchor {
		case Middle:
			left -= width / 2
		case End:
			left -= width
		}
		if left < 0 || left+width > Width || t.y < t.size || t.y > p.height-t.size/4 {
			texts = append(texts, t.text)
		}
	}
	return texts
}
