package inspector

import (
	"regexp"
	"slices"

	"github.com/holdfast-go/holdfast/core"
)

// redissonOwner is how Redisson names an owner: the UUID of the client and the number of the thread, and of a writer a suffix.
var redissonOwner = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9]+(:write)?$`)

// isLock returns false for a hash that is neither a lock of holdfast nor one of Redisson. [core.Client.Inspect] shows any hash as
// a lock, with fields as owners, and ForceUnlock would delete it. Such a hash is at the key of a lock if the prefix of the client
// is empty, or shared with other data. It is true for a free lock.
//
// A hash is not recognised if it has an expiry and only fields with the names of a lock's own. List would tell, but cannot be asked
// for one name: it walks over all keys.
func isLock(info core.Info) bool {
	switch {
	case info.Mode == "":
		return true
	case len(info.Holders) == 0: // it stays taken for a minimum time, which ends
		return info.TTL >= 0
	case slices.ContainsFunc(info.Holders, granted):
		return true
	case info.Mode == core.ModeMutex && len(info.Holders) > 1:
		return false
	}
	return !slices.ContainsFunc(info.Holders, func(h core.Holder) bool {
		return h.Holds <= 0 || h.Token != 0 || !redissonOwner.MatchString(h.Owner)
	})
}

// granted returns true for a holder whose grant holdfast has recorded.
func granted(h core.Holder) bool { return h.Holds > 0 && h.Token > 0 && !h.Granted.IsZero() }
