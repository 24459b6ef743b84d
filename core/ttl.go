package core

import "time"

// TTL returns the TTL of the client's leases, see [WithTTL]. It is for adapters that refuse options which cannot work
// with it.
func (c *Client) TTL() time.Duration { return c.lock.ttl }
