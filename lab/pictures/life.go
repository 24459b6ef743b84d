package main

import "github.com/holdfast-go/holdfast/internal/svg"

// Where the steps of a life are drawn. The margin beside them has the arrows of loops.
const (
	lifeLeft   = 36
	lifeWidth  = 468
	lifeText   = 112 // from the left of a step to what it says, beside the name of its package
	lifeLine   = 17
	lifeGap    = 18
	lifeMiddle = lifeLeft + lifeWidth/2
)

// life draws steps one below the other. Each step names the package that acts, and says what that package does.
type life struct {
	*svg.Picture
	y     float64 // of the next step
	begun bool    // an arrow leads to the next step
}

// part begins a part of the life, with a heading.
func (l *life) part(heading string) {
	l.y += lifeGap
	l.Heading(lifeLeft, l.y+10, heading)
	l.y += 22
	l.begun = false
}

// step draws one step as wide as the picture, and returns where its middle is.
func (l *life) step(tone svg.Tone, actor string, lines ...string) (middle float64) {
	if l.begun {
		l.Arrow(lifeMiddle, l.y, lifeMiddle, l.y+lifeGap)
		l.y += lifeGap
	}
	return l.box(tone, actor, lines)
}

// answer draws one of several answers to the step above it. It returns where its middle is.
func (l *life) answer(tone svg.Tone, actor string, lines ...string) (middle float64) {
	l.y += 6
	return l.box(tone, actor, lines)
}

func (l *life) box(tone svg.Tone, actor string, lines []string) (middle float64) {
	height := 14 + lifeLine*float64(len(lines))
	middle = l.y + height/2
	l.Rect(lifeLeft, l.y, lifeWidth, height, tone)
	l.Heading(lifeLeft+10, middle+5, actor)
	for i, line := range lines {
		l.Note(lifeLeft+lifeText, l.y+20+lifeLine*float64(i), svg.Start, line)
	}
	l.y += height
	l.begun = true
	return middle
}

// branch is one of several steps that exclude each other.
type branch struct {
	tone  svg.Tone
	actor string
	lines []string
	end   bool // no arrow leads on
}

// fork draws branches side by side, and returns where they begin and end.
func (l *life) fork(branches ...branch) (top, bottom float64) {
	top = l.y + lifeGap
	width := (lifeWidth - 14*float64(len(branches)-1)) / float64(len(branches))
	height := 0.0
	for _, b := range branches {
		height = max(height, 32+lifeLine*float64(len(b.lines)))
	}
	bottom = top + height
	for i, b := range branches {
		x := lifeLeft + (width+14)*float64(i)
		if l.begun {
			l.Arrow(x+width/2, l.y, x+width/2, top)
		}
		l.Rect(x, top, width, height, b.tone)
		l.Heading(x+10, top+21, b.actor)
		for j, line := range b.lines {
			l.Note(x+10, top+39+lifeLine*float64(j), svg.Start, line)
		}
		if !b.end {
			l.Arrow(x+width/2, bottom, x+width/2, bottom+lifeGap)
		}
	}
	l.y, l.begun = bottom+lifeGap, false
	return top, bottom
}

// back draws the arrow of a loop, from one height to another above it.
func (l *life) back(from, to float64) {
	l.Arrow(lifeLeft, from, lifeLeft-20, from, lifeLeft-20, to, lifeLeft, to)
}
