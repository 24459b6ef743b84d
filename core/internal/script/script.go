package script

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/internal/foreign"
)

//go:embed lua/lock/*.lua lua/once/*.lua
var luaFiles embed.FS

// The scripts of locks, one per operation. Each file opens with its contract.
var (
	acquireScript        = load("acquire_fast", "compact_grant", "token", "lock_kind", "compact", "mutex_owner", "mutex_common", "acquire")
	releaseScript        = load("release_fast", "publish", "lock_channel", "wake_next", "lock_kind", "compact", "release")
	passTurnScript       = load("publish", "lock_channel", "wake_next", "pass_turn")
	queueAcquireScript   = load("queue_acquire_fast", "compact_grant", "token", "publish", "lock_kind", "compact", "permits", "mutex_owner", "queue_common", "queue_holder", "queue_acquire")
	queueReleaseScript   = load("release_fast", "publish", "token", "lock_kind", "compact", "permits", "queue_common", "queue_release")
	queueHeartbeatScript = load("publish", "token", "lock_kind", "compact", "permits", "mutex_owner", "queue_common", "queue_holder", "queue_heartbeat")
	forceScript          = load("publish", "token", "lock_kind", "compact", "permits", "queue_common", "force")
	forceHolderScript    = load("publish", "token", "lock_kind", "compact", "permits", "queue_common", "force_holder")
	wasForcedScript      = load("was_forced")
	renewScript          = load("renew")
	raiseScript          = load("token", "lock_kind", "compact", "raise")
	redlockCommitScript  = load("token", "lock_kind", "compact", "mutex_owner", "mutex_common", "redlock_commit")
	barScript            = load("bar")
	serverRunIDScript    = load("server_run_id")
	deploymentIDScript   = load("deployment_id")
	inspectScript        = load("lock_kind", "inspect")
	proclaimScript       = load("publish", "lock_kind", "compact", "proclaim")
	announceScript       = load("publish", "announce")
)

// The scripts of Once. Those that announce the end of an attempt have lua/lock/publish.lua too.
var (
	onceBeginScript   = load("once/begin_fast", "once/common", "once/group", "once/begin")
	onceRenewScript   = load("once/common", "once/renew")
	onceEnlistScript  = load("once/common", "once/group", "once/enlist")
	onceDeclareScript = load("once/common", "once/declare")
	oncePeekScript    = load("once/common", "once/peek")
	onceListScript    = load("once/list")
	onceSummaryScript = load("once/common", "once/summary")
	onceFinishScript  = load("once/complete_fast", "publish", "once/common", "once/group", "once/finish_common", "once/finish")
	onceReleaseScript = load("publish", "once/common", "once/group", "once/release")
	onceResolveScript = load("publish", "once/common", "once/seen", "once/group", "once/marks", "once/finish_common", "once/resolve")
	onceForgetScript  = load("publish", "once/common", "once/seen", "once/marks", "once/forget")
)

// load returns the script of these files. The last one is its own file, the others are parts that scripts share.
func load(names ...string) *transport.Script { return transport.NewScript(source(names...)) }

// source returns the text of the files lua/<name>.lua of this package, one behind the other. A name without a folder is one of
// lua/lock. It panics if there is no such file.
func source(names ...string) string {
	files := make([]string, len(names))
	for i, name := range names {
		if files[i] = name; !strings.Contains(name, "/") {
			files[i] = "lock/" + name
		}
	}
	return transport.ReadScripts(luaFiles, files...)
}

const (
	// TokenLimit is the limit of package transport, which also reads tokens in messages.
	TokenLimit = transport.TokenLimit
	// leastToken is the least token of a grant that is one number, because lesser ones are statuses of other scripts.
	leastToken = transport.LastStatus + 1

	// maxExact is the greatest integer up to which the numbers of Lua are exact.
	maxExact = 1 << 53
	// longestTTL is the longest TTL that is reported for a lock of another program, which may have any.
	longestTTL = 100 * 365 * 24 * time.Hour
)

// decoder reads the reply of a script, one element after the other. What a server replies is input: a co-tenant of Redis may have
// overwritten a field that a script returns, a list ends at the first nil, and a proxy may reply anything. So each method checks the
// type and the range of its element. After the first element that is wrong or missing, all methods return zero values, and End
// returns the error of [Unexpected].
type decoder struct {
	reply any
	rest  []any
	wrong bool
}

// newDecoder returns the decoder of a reply. A reply that is no list is read as a list of one element.
func newDecoder(reply any) decoder {
	if list, ok := reply.([]any); ok {
		return decoder{reply: reply, rest: list}
	}
	return decoder{reply: reply, rest: []any{reply}}
}

// Len returns the number of elements that are left. It returns 0 after a wrong one.
func (d *decoder) Len() int { return len(d.rest) }

// Fail makes the whole reply a wrong one.
func (d *decoder) Fail() { d.rest, d.wrong = nil, true }

// next returns the next element, nil if there is none.
func (d *decoder) next() any {
	if len(d.rest) == 0 {
		d.Fail()
		return nil
	}
	element := d.rest[0]
	d.rest = d.rest[1:]
	return element
}

// Int reads an integer from least to most. It returns 0 for anything else.
func (d *decoder) Int(least, most int64) int64 {
	n, ok := d.next().(int64)
	if !ok || n < least || n > most {
		d.Fail()
		return 0
	}
	return n
}

// Bool reads 1 or 0.
func (d *decoder) Bool() bool { return d.Int(0, 1) == 1 }

// Token reads a fencing token.
func (d *decoder) Token() int64 { return d.Int(1, TokenLimit) }

// TTL reads ms that are left of a lock or a record. They are negative if it has no expiry. A longer TTL than 100 years, which only
// another program sets, is read as these.
func (d *decoder) TTL() time.Duration {
	ms, ok := d.next().(int64)
	if !ok || ms < -2 {
		d.Fail()
		return 0
	}
	return time.Duration(min(ms, int64(longestTTL/time.Millisecond))) * time.Millisecond
}

// Time reads us since 1970.
func (d *decoder) Time() time.Time { return time.UnixMicro(d.Int(0, maxExact)) }

// Text reads a string.
func (d *decoder) Text() string {
	text, ok := d.next().(string)
	if !ok {
		d.Fail()
	}
	return text
}

// Texts reads a list of strings.
func (d *decoder) Texts() []string {
	list, ok := d.next().([]any)
	texts := make([]string, len(list))
	for i, element := range list {
		text, isText := element.(string)
		texts[i], ok = text, ok && isText
	}
	if !ok {
		d.Fail()
		return nil
	}
	return texts
}

// Pairs reads a list of alternating names and values. It never returns nil.
func (d *decoder) Pairs() map[string]string {
	texts := d.Texts()
	if len(texts)%2 != 0 {
		d.Fail()
		texts = nil
	}
	pairs := make(map[string]string, len(texts)/2)
	for i := 0; i < len(texts); i += 2 {
		pairs[texts[i]] = texts[i+1]
	}
	return pairs
}

// End returns nil if all elements were read and none was wrong. Otherwise it returns the error of [Unexpected].
func (d *decoder) End() error {
	if d.wrong || len(d.rest) > 0 {
		return Unexpected(d.reply)
	}
	return nil
}

// ReadScan returns the cursor and the keys in a reply to SCAN.
func ReadScan(reply any) (cursor string, keys []string, err error) {
	d := newDecoder(reply)
	cursor, keys = d.Text(), d.Texts()
	if _, bad := strconv.ParseUint(cursor, 10, 64); bad != nil {
		d.Fail()
	}
	return cursor, keys, d.End()
}

// readStatus returns a reply that is one integer from least to most.
func readStatus(reply any, least, most int64) (int64, error) {
	n, ok := reply.(int64)
	if !ok || n < least || n > most {
		return 0, Unexpected(reply)
	}
	return n, nil
}

// done returns whether a script that replies 1 or 0 has replied 1.
func done(reply any, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	status, err := readStatus(reply, 0, 1)
	return status == 1, err
}

// readText returns the reply of a script that is one string.
func readText(reply any, err error) (string, error) {
	if err != nil {
		return "", err
	}
	d := newDecoder(reply)
	text := d.Text()
	return text, d.End()
}

// Unexpected returns the error for a reply that no script returns: the server is not a Redis that this package knows, or another
// program has written to the keys of the script. The script has run, and running it again would not help, so it is no outage.
func Unexpected(reply any) error {
	return transport.WithOutcome(fmt.Errorf("holdfast: unexpected reply from Redis: %s", describe(reply)), transport.Failed)
}

// Bounds of what an error shows of a reply.
const (
	maxShownElements = 8
	maxShownBytes    = 64
)

// describe returns a reply as a short text for an error. Strings are quoted, because another program may have written them.
func describe(reply any) string {
	switch r := reply.(type) {
	case nil:
		return "nil"
	case string:
		return foreign.Quote(r, maxShownBytes)
	case int64:
		return strconv.FormatInt(r, 10)
	case []any:
		shown := make([]string, 0, maxShownElements+1)
		for i, element := range r {
			if i == maxShownElements {
				shown = append(shown, fmt.Sprintf("... %d elements", len(r)))
				break
			}
			if list, ok := element.([]any); ok {
				shown = append(shown, fmt.Sprintf("[%d elements]", len(list)))
				continue
			}
			shown = append(shown, describe(element))
		}
		return "[" + strings.Join(shown, " ") + "]"
	}
	return fmt.Sprintf("%T", reply)
}

// Milliseconds returns d in milliseconds, rounded up, because no TTL in Redis may be shorter than what was requested.
func Milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// tokenOf returns the fencing token that text has in decimal digits. It returns 0 if text has none.
func tokenOf(text string) int64 { return number(text, TokenLimit) }

// number returns the integer from 0 to most that a field has in decimal digits. It returns 0 for any other text.
func number(text string, most int64) int64 {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 && n <= most {
		return n
	}
	return 0
}

// moment returns the time of a text with microseconds since 1970. It returns the zero time if the text has none, or one that is
// greater than any token: JSON has no form for times after the year 9999.
func moment(text string) time.Time {
	if us := tokenOf(text); us > 0 {
		return time.UnixMicro(us)
	}
	return time.Time{}
}
