package check

// NewReport returns one of nothing, to which others can be added.
func NewReport() *Report {
	return &Report{
		Apart: make(map[string]int), Faults: make(map[string]int), Rows: make(map[int]int), Returns: make(map[string]int),
		Subjects: make(map[string]int), InUse: make(map[int]int),
	}
}

// Add takes in what another report counts.
func (r *Report) Add(other *Report) {
	r.Violations = append(r.Violations, other.Violations...)
	for _, pair := range []struct{ into, from map[string]int }{
		{r.Apart, other.Apart},
		{r.Faults, other.Faults},
		{r.Returns, other.Returns},
		{r.Subjects, other.Subjects},
	} {
		for name, count := range pair.from {
			pair.into[name] += count
		}
	}
	for row, count := range other.Rows {
		r.Rows[row] += count
	}
	r.Injected += other.Injected
	r.Grants += other.Grants
	r.Tokens += other.Tokens
	r.Probes += other.Probes
	r.HandOvers += other.HandOvers
	r.Writes += other.Writes
	r.Refused += other.Refused
	r.Stale += other.Stale
	r.Permits += other.Permits
	for limit, most := range other.InUse {
		r.InUse[limit] = max(r.InUse[limit], most)
	}
	r.OnceKeys += other.OnceKeys
	r.Freed.Add(other.Freed)
	r.Overdue.Add(other.Overdue)
	r.Told.Add(other.Told)
	r.Lasted += other.Lasted
}
