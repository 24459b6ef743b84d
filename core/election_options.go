package core

import "unicode/utf8"

// ElectionOption configures an [Election]. Every [LockOption] is one too. [WithTTL] is how long a crashed leader blocks
// the others. [WithMaxHold] limits a term, and [WithFixedTTL] makes it end without renewal: the leader's context ends
// then, as after a loss. [WithWait] limits a campaign. [WithOwner] is refused, because candidates with equal owners would
// lead together. [WithMinHold] is refused, because a resignation elects the next leader at once. Defaults come from the
// client, except for these two. The methods report an invalid value as [ErrInvalidOption].
type ElectionOption interface{ applyElection(*electionConfig) }

// maxLeaderValue bounds what a leader proclaims, because every observer reads it after each change.
const maxLeaderValue = 4096

// electionConfig holds the effective options of an Election.
type electionConfig struct {
	lock  lockConfig
	value string
}

func newElectionConfig(client lockConfig, opts []ElectionOption) electionConfig {
	c := electionConfig{lock: client}
	c.lock.minHold, c.lock.owner, c.lock.leavesLosses = 0, "", true
	for _, opt := range opts {
		if opt != nil {
			opt.applyElection(&c)
		}
	}
	switch {
	case c.lock.owner != "":
		c.lock.refuse(invalidOption("WithOwner is for locks: every candidate of an Election has an owner of its own"))
	case c.lock.minHold != 0:
		c.lock.refuse(invalidOption("WithMinHold is for locks: a resignation elects the next leader at once"))
	}
	return c
}

type electionOption func(*electionConfig)

func (o electionOption) applyElection(c *electionConfig) { o(c) }

// WithValue sets what a leader proclaims when it is elected, for instance its address: see [Leader]. At most 4,096 bytes
// of UTF-8. [Leadership.Proclaim] changes it. Defaults to "".
func WithValue(value string) ElectionOption {
	return electionOption(func(c *electionConfig) {
		if err := checkLeaderValue("WithValue", value); err != nil {
			c.lock.refuse(err)
		}
		c.value = value
	})
}

func checkLeaderValue(option, value string) error {
	switch {
	case len(value) > maxLeaderValue:
		return invalidOption("%s: %d bytes, at most %d are allowed", option, len(value), maxLeaderValue)
	case !utf8.ValidString(value):
		return invalidOption("%s: no valid UTF-8", option)
	}
	return nil
}
