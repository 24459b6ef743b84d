package measure

import "runtime"

// Allocated is what the process has allocated since it was started.
type Allocated struct{ Objects, Bytes uint64 }

// Allocations stops the world for a moment, so take it before and after a workload only.
func Allocations() Allocated {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Allocated{Objects: m.Mallocs, Bytes: m.TotalAlloc}
}

// Since returns what was allocated between before and a.
func (a Allocated) Since(before Allocated) Allocated {
	return Allocated{Objects: a.Objects - before.Objects, Bytes: a.Bytes - before.Bytes}
}

// Held is the memory in use.
type Held struct{ Heap, Stacks uint64 }

// InUse collects what is garbage first, twice: pools give their objects up at the second collection only.
func InUse() Held {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Held{Heap: m.HeapAlloc, Stacks: m.StackInuse}
}
