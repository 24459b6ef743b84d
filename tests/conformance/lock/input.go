package lockconformance

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

var inputTests = map[string]func(*testing.T, Subject){
	"BadNamesAreRefused":   badNamesAreRefused,
	"BadOptionsAreRefused": badOptionsAreRefused,
	"WrongTypeIsNamed":     wrongTypeIsNamed,
}

// emptyTags are names with an empty first pair of braces. They are no names, since Redis Cluster takes such a pair
// for none at all, unless the prefix brings the pair that counts.
var emptyTags = []string{"{}a", "a{}b{c}"}

func (s Subject) bringsTag() bool { return strings.Contains(s.Prefix, "{") }

func badNamesAreRefused(t *testing.T, s Subject) {
	p := newWorld(t, s).process()
	names := []string{"", strings.Repeat("x", 513), "a\x00b", "a{b", "a}b", "}{", "{{a}"}
	if !s.bringsTag() {
		names = append(names, emptyTags...)
	}
	for _, name := range names {
		_, err := p.lock(name).Lock(context.Background())
		p.w.wantErr(err, core.ErrInvalidName)
		_, err = p.lock(name).TryLock(context.Background())
		p.w.wantErr(err, core.ErrInvalidName)
	}
}

func badOptionsAreRefused(t *testing.T, s Subject) {
	p := newWorld(t, s).process()
	for name, opt := range map[string]core.LockOption{
		"no TTL":                core.WithTTL(0),
		"negative TTL":          core.WithTTL(-time.Second),
		"TTL too short":         core.WithTTL(9 * time.Millisecond),
		"TTL too long":          core.WithTTL(1 << 62),
		"TTL with microseconds": core.WithTTL(time.Second + time.Microsecond),
		"no fixed TTL":          core.WithFixedTTL(0),
		"negative wait":         core.WithWait(-1),
		"wait without unit":     core.WithWait(5),
		"max hold without unit": core.WithMaxHold(30),
		"negative max hold":     core.WithMaxHold(-1),
		"max hold too long":     core.WithMaxHold(1<<63 - 1),
		"negative min hold":     core.WithMinHold(-1),
		"empty owner":           core.WithOwner(""),
		"owner with space":      core.WithOwner("a b"),
		"owner too long":        core.WithOwner(strings.Repeat("x", 129)),
		"owner like a field":    core.WithOwner("mode"),
		"owner like a hold":     core.WithOwner("hold:x"),
		"owner like a writer":   core.WithOwner("x:write"),
	} {
		t.Run(name, func(t *testing.T) {
			for _, try := range []func() (*core.Lease, error){
				func() (*core.Lease, error) { return p.lock("name", opt).Lock(context.Background()) },
				func() (*core.Lease, error) { return p.lock("name").TryLock(context.Background(), opt) },
			} {
				_, err := try()
				p.w.wantErr(err, core.ErrInvalidOption)
			}
		})
	}
	p.w.free("name")
}

func wrongTypeIsNamed(t *testing.T, s Subject) {
	w := newWorld(t, s)
	ctx := context.Background()
	key := w.key("name")
	direct := w.direct()
	for _, rdb := range direct {
		rdb.LPush(ctx, key, "foreign")
	}
	p := w.process()
	_, err := p.lock("name").Lock(ctx)
	w.wantErr(err, core.ErrWrongType)
	if err != nil && !strings.Contains(err.Error(), strconv.Quote(key)) {
		t.Errorf("error %v does not name the key", err)
	}
	for _, rdb := range direct {
		if got := rdb.LLen(ctx, key).Val(); got != 1 {
			t.Errorf("the foreign list has %d elements, want 1", got)
		}
	}
}
