package oncescript

import (
	"math"
	"strconv"
	"testing"

	"github.com/holdfast-go/holdfast/internal/fastpath"
)

// TestFastPaths compares each fast path of this package with its slow path.
func TestFastPaths(t *testing.T) {
	t.Parallel()
	fastpath.Compare(t, luaFiles, fastpath.Path{
		File: "begin_fast", Source: beginScript.Source, Fields: recordFields.all(), Draw: drawBegin,
		Replies: []string{"1", "0", "-1", "-2", "-3", "-4", "-5", "-6", "-7", "-8", "error"},
	})
}

// recordNames are the fields of a record that begin.lua reads or writes, see lua/common.lua.
type recordNames struct {
	state, id, attempt, token, began, ttl, deadline, outcomeOnExpiry, fingerprint, note string
}

var recordFields = recordNames{
	state: "state", id: "id", attempt: "attempt", token: "token", began: "began", ttl: "ttl", deadline: "deadline",
	outcomeOnExpiry: "outcome_on_expiry", fingerprint: "fingerprint", note: "note",
}

func (n recordNames) all() []string {
	return []string{
		n.state, n.id, n.attempt, n.token, n.began, n.ttl, n.deadline, n.outcomeOnExpiry, n.fingerprint, n.note,
	}
}

const (
	askingAttempt, otherAttempt = "client:1:7", "client:2:8"
	fingerprint                 = "fingerprint"
)

// drawBegin makes a random state and a random request for begin.lua.
func drawBegin(d *fastpath.Draw) {
	record, token, ended := d.Key("record"), d.Key("token"), d.Key("ended")
	d.Keys = []string{record, token, ended}
	d.Args = beginArgs(d)
	if d.Chance(50) {
		drawRecord(d, record)
	}
	d.LastToken(token)
	d.Remembered(ended)
	if d.Chance(30) {
		drawGroup(d, record)
	}
}

// beginArgs returns random arguments for begin.lua, without those of a group.
func beginArgs(d *fastpath.Draw) []string {
	window := func() string { // in ms; "" for no bound
		if d.Chance(85) {
			return ""
		}
		return fastpath.OneOf(d, []string{"0", "-1", strconv.FormatInt(d.Milli(d.Around(1, 60_000)), 10)})
	}
	return []string{
		askingAttempt, strconv.FormatInt(d.Lifetime(), 10), strconv.FormatInt(d.Lifetime(), 10),
		strconv.FormatInt(d.Lifetime(), 10), fastpath.OneOf(d, []string{ExpiryAllowsRetry, ExpiryMeansUnknown}),
		fastpath.OneOf(d, []string{"", fingerprint}), "0", window(), window(), fastpath.OneOf(d, []string{"", "note"}),
	}
}

// drawRecord writes a record: of an attempt that runs, has expired, has an outcome or was released.
func drawRecord(d *fastpath.Draw, key string) {
	if d.Chance(5) {
		d.OtherType(key)
		return
	}
	fields := map[string]string{
		recordFields.state: fastpath.OneOf(d, []string{"", "running", "running", "running", "completed", "unknown"}),
		recordFields.id:    fastpath.OneOf(d, []string{otherAttempt, otherAttempt, askingAttempt}), recordFields.attempt: fastpath.OneOf(d, []string{"1", "5"}),
		recordFields.token: d.Micro(d.Around(1, 1_000_000)), recordFields.began: d.Micro(-1_000_000),
		recordFields.ttl:             strconv.FormatInt(d.Lifetime(), 10),
		recordFields.deadline:        strconv.FormatInt(d.Milli(d.Around(1, 2, 10_000, 600_000)), 10),
		recordFields.outcomeOnExpiry: fastpath.OneOf(d, []string{ExpiryAllowsRetry, ExpiryMeansUnknown, ExpiryMeansCompleted}),
		recordFields.fingerprint:     fastpath.OneOf(d, []string{"", "", fingerprint, "another"}),
		recordFields.note:            fastpath.OneOf(d, []string{"", "old note"}),
		"ended":                      d.Micro(-1000),
		"value":                      fastpath.OneOf(d, []string{"", "value"}),
		"reason":                     fastpath.OneOf(d, []string{"", "reason"}),
	}
	percent := 100
	if d.Chance(15) {
		percent = 80
	}
	d.Hash(key, percent, fields)
}

// drawGroup puts the record into a group with some others, see lua/group.lua. Most groups are bounded.
func drawGroup(d *fastpath.Draw, record string) {
	group := d.Key("group")
	d.Keys = append(d.Keys, group)
	most, bytes := 0, 0
	if d.Chance(70) {
		tokens := d.Key("grouptokens")
		d.Keys = append(d.Keys, tokens)
		d.LastToken(tokens)
		most, bytes = fastpath.OneOf(d, []int{0, 1, 1, 2}), fastpath.OneOf(d, []int{0, 2048, 4096, 8192})
	}
	d.Args[6] = strconv.Itoa(most)
	d.Args = append(d.Args, fastpath.OneOf(d, []string{"1536", "2048", "3000"}), strconv.Itoa(bytes))
	if d.Chance(5) {
		d.OtherType(group)
		return
	}
	for _, member := range []string{record, d.Key("second"), d.Key("third")} {
		if d.Chance(50) {
			class := fastpath.OneOf(d, []int64{45, 48, 50}) // of sizes
			d.Do("ZADD", group, class*int64(math.Exp2(42))+d.Milli(d.Around(1, 60_000)), member)
		}
	}
	d.Expire(group)
}
