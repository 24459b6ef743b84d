package script

import (
	"math"
	"strconv"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit/fastpath"
)

// TestOnceFastPaths compares each fast path of a Once with its slow path.
func TestOnceFastPaths(t *testing.T) {
	t.Parallel()
	fastpath.Compare(t, luaFolder("once"), fastpath.Path{
		File: "begin_fast", Source: onceBeginScript.Source, Fields: recordFields.all(), Draw: drawBegin,
		Replies: []string{"1", "0", "-1", "-2", "-3", "-4", "-5", "-6", "-7", "error"}, Long: longBegin,
	}, fastpath.Path{
		File: "complete_fast", Source: onceFinishScript.Source, Draw: drawComplete,
		Fields:  []string{recordFields.state, recordFields.id, recordFields.attempt, recordFields.token, "value"},
		Replies: []string{"0", "1", "2", "error"},
	})
}

// longBegin returns the long reply for the token that is the reply for a first attempt.
func longBegin(reply any) any {
	if token, ok := reply.(int64); ok {
		return []any{int64(1), token, int64(1), token}
	}
	return reply
}

// recordNames are the fields of a record that begin.lua reads or writes, see lua/once/common.lua.
type recordNames struct {
	state, id, attempt, token, began, ttl, deadline, outcomeOnExpiry, declaration, fingerprint, note, by, label string
}

var recordFields = recordNames{
	state: "state", id: "id", attempt: "attempt", token: "token", began: "began", ttl: "ttl", deadline: "deadline",
	outcomeOnExpiry: "outcome_on_expiry", declaration: "declaration", fingerprint: "fingerprint", note: "note",
	by: "by", label: "label",
}

func (n recordNames) all() []string {
	return []string{
		n.state, n.id, n.attempt, n.token, n.began, n.ttl, n.deadline, n.outcomeOnExpiry, n.declaration,
		n.fingerprint, n.note, n.by, n.label,
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
	args := drawBeginArgs(d)
	if d.Chance(50) {
		drawRecord(d, record)
	}
	d.LastToken(token)
	d.Remembered(ended)
	if d.Chance(30) {
		args = append(args, drawGroup(d, record)...)
	}
	d.Args = drawShort(d, args)
}

// drawBeginArgs returns random arguments for begin.lua, without a group's.
func drawBeginArgs(d *fastpath.Draw) []string {
	window := func() string { // in ms; "" for no bound
		if d.Chance(85) {
			return ""
		}
		return fastpath.OneOf(d, []string{"0", "-1", strconv.FormatInt(d.Milli(d.Around(1, 60_000)), 10)})
	}
	return []string{
		askingAttempt, strconv.FormatInt(d.Lifetime(), 10), strconv.FormatInt(d.Lifetime(), 10),
		strconv.FormatInt(d.Lifetime(), 10), fastpath.OneOf(d, []string{"", ExpiryMeansUnknown}),
		fastpath.OneOf(d, []string{"", fingerprint}), fastpath.OneOf(d, []string{"", "note"}), fastpath.OneOf(d, []string{"", "web-1:7", "web-1:7"}),
		fastpath.OneOf(d, []string{"", "", "label"}), window(), window(),
	}
}

// drawShort leaves out the arguments at the end that are "", at times.
func drawShort(d *fastpath.Draw, args []string) []string {
	for d.Chance(90) && args[len(args)-1] == "" {
		args = args[:len(args)-1]
	}
	return args
}

// drawComplete makes a random state and a random request for finish.lua that completes.
func drawComplete(d *fastpath.Draw) {
	record, ended, marks := d.Key("record"), d.Key("ended"), d.Key("marks")
	d.Keys = []string{record, ended, marks}
	if d.Chance(85) {
		drawRecord(d, record)
	}
	d.Remembered(ended)
	token := d.Micro(d.Around(1, 1_000_000))
	switch n := d.IntN(100); {
	case n < 70:
	case n < 97:
		d.Do("ZADD", marks, d.Milli(d.Around(1, 60_000)), fastpath.OneOf(d, []string{token, d.Micro(7)}))
		d.Expire(marks)
	default:
		d.OtherType(marks)
	}
	args := []string{
		askingAttempt, strconv.FormatInt(d.Lifetime(), 10), token, fastpath.OneOf(d, []string{"PUBLISH", "SPUBLISH"}), "channel",
		fastpath.OneOf(d, []string{"", "value"}), fastpath.OneOf(d, []string{"", "", "600000"}), fastpath.OneOf(d, []string{"", "", "1"}),
		fastpath.OneOf(d, []string{"", fingerprint}), fastpath.OneOf(d, []string{"", "5"}),
		fastpath.OneOf(d, []string{"", "web-1:7"}), fastpath.OneOf(d, []string{"", "label"}),
	}
	if d.Chance(15) {
		args = append(args, drawGroup(d, record)[0])
	}
	d.Args = drawShort(d, args)
}

// drawRecord writes a record: of an attempt that runs, has expired, has an outcome or was released.
func drawRecord(d *fastpath.Draw, key string) {
	if d.Chance(5) {
		d.OtherType(key)
		return
	}
	fields := map[string]string{
		recordFields.state: fastpath.OneOf(d, []string{"", "running", "running", "running", "completed", "unknown"}),
		recordFields.id:    fastpath.OneOf(d, []string{"", otherAttempt, otherAttempt, askingAttempt, askingAttempt}), recordFields.attempt: fastpath.OneOf(d, []string{"", "1", "5"}),
		recordFields.token: d.Micro(d.Around(1, 1_000_000)), recordFields.began: fastpath.OneOf(d, []string{"", "0", d.Micro(-1_000_000)}),
		recordFields.ttl:             strconv.FormatInt(d.Lifetime(), 10),
		recordFields.deadline:        fastpath.OneOf(d, []string{"", strconv.FormatInt(d.Milli(d.Around(1, 2, 10_000, 600_000)), 10)}),
		recordFields.outcomeOnExpiry: fastpath.OneOf(d, []string{"", ExpiryAllowsRetry, ExpiryMeansUnknown, ExpiryMeansCompleted}),
		recordFields.declaration:     fastpath.OneOf(d, []string{"", "0", "3"}),
		recordFields.fingerprint:     fastpath.OneOf(d, []string{"", "", fingerprint, "another"}),
		recordFields.note:            fastpath.OneOf(d, []string{"", "old note"}),
		recordFields.by:              fastpath.OneOf(d, []string{"", "web-2:8"}),
		recordFields.label:           fastpath.OneOf(d, []string{"", "old label"}),
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

// drawGroup puts the record into a group with some others, see lua/once/group.lua. Most groups are bounded. It returns the
// arguments that tell so.
func drawGroup(d *fastpath.Draw, record string) []string {
	group := d.Key("group")
	d.Keys = append(d.Keys, group)
	most, bytes := "", ""
	if d.Chance(70) {
		most = fastpath.OneOf(d, []string{"", "1", "1", "2"})
		bytes = fastpath.OneOf(d, []string{"", "2048", "4096", "8192"})
	}
	args := []string{fastpath.OneOf(d, []string{"1536", "2048", "3000"}), most, bytes}
	if d.Chance(5) {
		d.OtherType(group)
		return args
	}
	for _, member := range []string{record, d.Key("second"), d.Key("third")} {
		if d.Chance(50) {
			class := fastpath.OneOf(d, []int64{45, 48, 50}) // of sizes
			d.Do("ZADD", group, class*int64(math.Exp2(42))+d.Milli(d.Around(1, 60_000)), member)
		}
	}
	d.Expire(group)
	return args
}
