package main

import (
	"context"
	"fmt"
	"os"

	"github.com/holdfast-go/holdfast/internal/svg"
)

// sellTwice sells with the guards and without, and draws both outcomes into a file.
func sellTwice(ctx context.Context, cfg config, file string) (status int, err error) {
	cfg.unguarded, cfg.guards = false, locked
	guarded, err := sell(ctx, cfg)
	if err != nil || guarded.status() != exitFine {
		return guarded.status(), err
	}
	fmt.Println()
	cfg.unguarded, cfg.guards = true, unlocked
	baseline, err := sell(ctx, cfg)
	switch {
	case err != nil:
		return 0, err
	case baseline == nil || baseline.interrupted:
		return exitInterrupted, nil
	case !baseline.broken():
		return exitBroken, nil
	}
	if err := os.WriteFile(file, []byte(draw(guarded, baseline).String()), 0o644); err != nil {
		return 0, fmt.Errorf("picture: %w", err)
	}
	fmt.Printf("\nBoth outcomes are drawn in %s.\n", file)
	return exitFine, nil
}

// Where the bars of the picture begin, and how long the longest one is.
const (
	barsLeft = 200
	barsLong = 255
	barsStep = 27
)

// draw draws the outcome of a sale with guards and of its baseline below each other.
func draw(guarded, baseline *report) *svg.Picture {
	g, c := guarded.audit, baseline.audit
	p := svg.New(460, "A flash sale with and without the guards of holdfast", fmt.Sprintf(
		"%d users want one of %d vouchers. With guards the shop takes %d orders, and no order is charged twice. Without "+
			"guards it takes %d orders, %d of them without a voucher; %d users have two orders and %d orders are charged twice.",
		guarded.config.users, g.start, g.orders, c.orders, c.oversold(), c.doubled, c.twice))
	scale := barsLong / float64(max(g.start, g.orders, c.orders, 1))
	p.Heading(20, 30, fmt.Sprintf("%d users want one of %d vouchers", guarded.config.users, g.start))
	p.Text(20, 64, svg.Start, "With the guards of holdfast, in "+brief(guarded.tally.took))
	outcome(p, 76, scale, g)
	p.Text(20, 250, svg.Start, "Without guards, in "+brief(baseline.tally.took))
	outcome(p, 262, scale, c)
	p.Note(20, 426, svg.Start, fmt.Sprintf("%d users at a time, on %d replicas of the shop.",
		guarded.config.clients, guarded.config.replicas))
	p.Note(20, 444, svg.Start, fmt.Sprintf("Each request is sent %d times. The dashed line is the stock.",
		guarded.config.attempts))
	return p
}

// outcome draws the figures of one sale as bars.
func outcome(p *svg.Picture, y, scale float64, a audit) {
	for i, figure := range []struct {
		name string
		n    int
		tone svg.Tone
	}{
		{"vouchers in stock", a.start, svg.Plain},
		{"orders taken", a.orders, svg.Good},
		{"oversold", a.oversold(), svg.Bad},
		{"users with two orders", a.doubled, svg.Bad},
		{"orders charged twice", a.twice, svg.Bad},
	} {
		top := y + barsStep*float64(i)
		if a.oversold() > 0 && figure.tone == svg.Good {
			figure.tone = svg.Bad
		}
		p.Text(barsLeft-10, top+18, svg.End, figure.name)
		if figure.n > 0 {
			p.Rect(barsLeft, top+3, scale*float64(figure.n), 20, figure.tone)
		}
		p.Text(barsLeft+scale*float64(figure.n)+8, top+18, svg.Start, fmt.Sprint(figure.n))
	}
	stock := barsLeft + scale*float64(a.start)
	p.Dashed(stock, y, stock, y+barsStep*5)
}
