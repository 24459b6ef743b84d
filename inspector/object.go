package inspector

// object is what has a page of its own, and what an action is done to. Its text is the name of that page.
type object string

const (
	objectLock   object = "lock"
	objectRecord object = "record"
	objectJob    object = "job"
)

// address returns the address of the page of the object with a name. more are further parameters, as for link.
func (o object) address(name string, more ...string) string {
	return link(string(o), append([]string{"name", name}, more...)...)
}

// digestOf returns what the log shows in place of a name; "" for a job, whose name the log may have.
func (h *Handler) digestOf(kind object, name string) string {
	switch kind {
	case objectLock:
		return h.locks.Digest(name)
	case objectRecord:
		return h.locks.Once(name).Digest()
	}
	return ""
}
