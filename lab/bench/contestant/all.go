package contestant

// All returns every contestant, in the order of the tables.
func All() []Contestant {
	all := holdfasts()
	all = append(all, bares()...)
	all = append(all, rueidislocks()...)
	all = append(all, redislocks()...)
	return append(all, redsyncs(), gozero())
}
