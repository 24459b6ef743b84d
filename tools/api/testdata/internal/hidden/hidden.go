package hidden

// Exported is out of reach.
const Exported = 1

// Parcel is what package shop has an alias of.
type Parcel struct {
	Weight int
	size   int
}

// Send is a method of the alias too.
func (p *Parcel) Send() int { return p.Weight + p.size }
