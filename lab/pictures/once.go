package main

import "github.com/holdfast-go/holdfast/internal/svg"

// once draws the states of a record and the calls that move it.
func once() *svg.Picture {
	p := svg.New(534, "The states of a record of Once",
		"Begin moves a key without a record to running. Complete moves it to completed. Release moves it back to none. "+
			"Hold, a failure or an expired lease under HoldFailures move it to unknown, from where Resolve leads to completed "+
			"and Forget to none. An expired lease under RetryFailures moves it to abandoned, from where the next Begin leads "+
			"to running. Every record ends with its retention.")
	p.Box(170, 20, 180, 50, svg.Plain, "none", "no record")
	p.Box(170, 190, 180, 50, svg.Held, "running", "lease renewed")
	p.Box(20, 370, 130, 50, svg.Good, "completed", "with a value")
	p.Box(215, 370, 130, 50, svg.Wait, "unknown", "needs review")
	p.Box(375, 370, 125, 50, svg.Plain, "abandoned", "lease expired")

	p.Arrow(225, 70, 225, 190)
	p.Text(217, 134, svg.End, "Begin")
	p.Arrow(295, 190, 295, 70)
	p.Text(303, 112, svg.Start, "Release")
	p.Note(303, 130, svg.Start, "error or panic,")
	p.Note(303, 147, svg.Start, "with RetryFailures")

	p.Arrow(195, 240, 90, 370)
	p.Text(118, 300, svg.End, "Complete")
	p.Note(106, 318, svg.End, "no error")

	p.Arrow(260, 240, 260, 370)
	p.Text(268, 270, svg.Start, "Hold")
	p.Note(268, 288, svg.Start, "error, panic, crash,")
	p.Note(268, 305, svg.Start, "with HoldFailures")

	p.Arrow(350, 225, 430, 225, 430, 370)
	p.Note(422, 336, svg.End, "crash, with")
	p.Note(422, 353, svg.End, "RetryFailures")
	p.Arrow(478, 370, 478, 205, 350, 205)
	p.Text(478, 197, svg.End, "next Begin")

	p.Arrow(215, 402, 150, 402)
	p.Note(183, 394, svg.Middle, "Resolve")
	p.Text(20, 454, svg.Start, "Forget, and the end of the retention, lead to none.")
	p.Note(20, 478, svg.Start, "Begin returns ErrCompleted, ErrOutcomeUnknown or ErrInProgress")
	p.Note(20, 496, svg.Start, "in the states completed, unknown and running.")
	p.Note(20, 518, svg.Start, "Declare changes which state a crash leads to.")
	return p
}
