package core

import (
	"cmp"
	"context"
	"slices"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// The order in which every Multi locks its members, so that no two wait for each other (lock ordering). The order must
// not depend on the caller, and it must be total.

// before compares members by what is known of them.
func (a member) before(b member) int {
	return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.key, b.key), cmp.Compare(a.where, b.where))
}

// sort brings the members into order and refuses those that are certainly there twice.
func (m *multi) sort() error {
	slices.SortStableFunc(m.members, member.before)
	keys := make(map[string][]*locker)
	for i, b := range m.members {
		if i > 0 && m.members[i-1].name == b.name && (m.members[i-1].own == nil || b.own == nil) {
			return invalidOption("Multi: %q is a member twice, judging by its name", b.name)
		}
		if b.own == nil {
			continue
		}
		for _, other := range keys[b.key] {
			if sameRedis(other.keeper, b.own.keeper) {
				return invalidOption("Multi: %q is a member twice", b.name)
			}
			m.needsDeployments = true
		}
		keys[b.key] = append(keys[b.key], b.own)
	}
	return nil
}

// order returns the members in order. Those with one key and different connections may lie in the same place, where
// the second would wait for the first, or in places whose order has to be the same for all callers that lock both.
func (m *multi) order(ctx context.Context) ([]member, error) {
	if !m.needsDeployments {
		return m.members, nil
	}
	count := make(map[string]int)
	for _, member := range m.members {
		count[member.key]++
	}
	members := slices.Clone(m.members)
	errs := transport.DoGrouped(ctx, len(members), func(ctx context.Context, i int) (err error) {
		if b := &members[i]; b.own != nil && count[b.key] > 1 {
			b.where, err = b.own.location(ctx)
		}
		return err
	})
	if err := primaryError(errs); err != nil {
		return nil, err
	}
	slices.SortStableFunc(members, member.before)
	type spot struct{ key, where string }
	seen := make(map[spot]bool)
	for _, b := range members {
		at := spot{b.key, b.where}
		if b.where != "" && seen[at] {
			return nil, invalidOption("Multi: %q is a member twice: two clients reach the same Redis", b.name)
		}
		seen[at] = true
	}
	return members, nil
}
