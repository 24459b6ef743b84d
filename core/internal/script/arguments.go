package script

// Scripts take their last arguments only as far as these differ from their defaults. So a request of the most frequent kind is
// short, and tells the fast path of its script so by the number of its arguments.

// appendOptional appends arguments up to the last one that is not its default: "", 0 or false.
func appendOptional(args []any, optional ...any) []any {
	n := len(optional)
	for n > 0 && isDefault(optional[n-1]) {
		n--
	}
	return append(args, optional[:n]...)
}

func isDefault(arg any) bool {
	switch arg {
	case "", 0, int64(0), false:
		return true
	}
	return false
}

// idArg returns the ID of the hold as an optional argument: it is the name of the owner by default.
func (h *Hold) idArg() any {
	if h.Owner == h.ID {
		return ""
	}
	return h.ScriptArgs.id
}

// releaseMemoryArgs returns the memories of instance.releaseMemories as optional arguments: missing is found by default.
func (i *Instance) releaseMemoryArgs(h *Hold, what ReleaseReason) (found, missing any) {
	found, missing = i.releaseMemories(h, what)
	if missing == found {
		missing = noMemoryArg
	}
	return found, missing
}
