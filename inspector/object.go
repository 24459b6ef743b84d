package inspector

import "github.com/holdfast-go/holdfast/internal/seal"

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

// digestOf returns what the log shows in place of a name. The log has jobs by their names: the digest of a job is the
// digest of the lock of its name, and only serves to confirm an action.
func (h *Handler) digestOf(kind object, name string) string {
	if kind == objectRecord {
		return seal.NamesOf(h.locks).Digest(name, true)
	}
	return seal.NamesOf(h.locks).Digest(name, false)
}
