package httpconformance

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

var operatorTests = tests{
	"OperatorResolvesUnknownOutcome":    testResolveUnknown,
	"OperatorForgetsUnknownOutcome":     testForgetUnknown,
	"OperatorCannotResolveWhatIsKnown":  testResolveKnown,
	"OperatorResolvesWhatWasDoneByHand": testResolveByHand,
	"OperatorLocatesWhatOnceHasDone":    testResolveOnce,
	"WrongKeysAreToldFromRightOnes":     testWrongKeys,
	"KeysOfOtherGuardsAreRefused":       testKeysOfOthers,
	"RecordsOfAScopeAreListed":          testRecords,
	"RecordsThatAreNotListedAreAnError": testRecordsUnlisted,
	"RecordsThatAreCountedAreListed":    testRecordsCounted,
	"AnswersOfOperatorsAreChecked":      testResolveChecked,
	"RecordsNameTheirRoute":             testRecordLabel,
}

// operated is what an operator can do with a guard that keeps records.
type operated interface {
	Peek(ctx context.Context, parts ...string) (core.Record, error)
	PeekKey(ctx context.Context, parts ...httplock.Key) (core.Record, error)
	Resolve(ctx context.Context, seen core.Record, value []byte) error
	Forget(ctx context.Context, seen core.Record) error
	Records(ctx context.Context, scope ...string) ([]core.Record, error)
}

// peek reads the record of a key.
func peek(t testing.TB, guard Guard, key httplock.Key) core.Record {
	t.Helper()
	r, err := guard.(operated).PeekKey(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// held are the options of a guard of payments.
func held(t testing.TB) []httplock.Option {
	t.Helper()
	codec, err := httplock.NewAESGCM([]byte("sixteen bytes..."))
	if err != nil {
		t.Fatal(err)
	}
	return []httplock.Option{
		core.WithFailurePolicy(core.HoldFailures), httplock.WithCodec(codec),
		httplock.WithKeySecret([]byte("sixteen bytes or more")),
	}
}

// failing is a handler that charges and then fails, until it is mended.
type failing struct {
	counter
	mended bool
}

func (f *failing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.mended {
		f.counter.ServeHTTP(w, r)
		return
	}
	f.runs.Add(1)
	w.WriteHeader(http.StatusInternalServerError)
}

var receipt = []byte("HTTP/1.1 201 Created\nLocation: /receipts/7\nContent-Type: text/plain\n\nreceipt 7")

// unknown has a request fail behind a guard that holds failures.
func (s *suite) unknown(t testing.TB, user string) (*site, *failing, operated) {
	t.Helper()
	h, guard := &failing{}, s.idempotent(t, held(t)...)
	site, r := s.mount(t, h, guard), request{user: user, key: "k"}
	site.do(r).want(t, http.StatusInternalServerError)
	site.do(r).refused(t, http.StatusConflict, httplock.CodeOutcomeUnknown)
	h.ran(t, 1)
	return site, h, guard.(operated)
}

// testResolveUnknown: the money has moved, says the bank. From then on the client gets its receipt.
func testResolveUnknown(t *testing.T, s *suite) {
	const user = "resolve-unknown"
	site, h, guard := s.unknown(t, user)
	key := idempotentKey(t, user, "k")
	seen := peek(t, guard, key)
	if seen.State != core.StateUnknown || seen.Attempt != 1 || seen.Reason == "" || seen.Value != nil {
		t.Fatalf("record %+v, want one run of unknown outcome", seen)
	}
	if err := guard.Resolve(t.Context(), seen, receipt); err != nil {
		t.Fatal(err)
	}
	if err := guard.Forget(t.Context(), seen); !errors.Is(err, core.ErrChanged) {
		t.Errorf("the record of a resolved run is forgotten as one of unknown outcome: %v", err)
	}
	if err := guard.Resolve(t.Context(), seen, receipt); !errors.Is(err, core.ErrChanged) || !errors.Is(err, core.ErrCompleted) {
		t.Errorf("resolved as one of unknown outcome: %v", err)
	}
	a := site.do(request{user: user, key: "k"}).replayed(t, http.StatusCreated, "receipt 7")
	if got := a.header.Get("Location"); got != "/receipts/7" {
		t.Errorf("Location %q", got)
	}
	site.do(request{user: user, key: "k", body: "another"}).
		refused(t, http.StatusUnprocessableEntity, httplock.CodeKeyReused)
	r := peek(t, guard, key)
	response, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(r.Value)), nil)
	if err != nil || r.State != core.StateCompleted || response.StatusCode != http.StatusCreated || !bytes.HasSuffix(r.Value, []byte("\n\r\nreceipt 7")) {
		t.Errorf("record %+v, error %v, want the receipt", r, err)
	}
	if err == nil {
		_ = response.Body.Close()
	}
	if err := guard.Resolve(t.Context(), r, nil); !errors.Is(err, core.ErrCompleted) {
		t.Errorf("resolved once more: %v, want that it was completed", err)
	}
	h.ran(t, 1)
}

// testForgetUnknown: the money has not moved. The retry may run.
func testForgetUnknown(t *testing.T, s *suite) {
	const user = "forget-unknown"
	site, h, guard := s.unknown(t, user)
	key := idempotentKey(t, user, "k")
	if err := guard.Forget(t.Context(), peek(t, guard, key)); err != nil {
		t.Fatal(err)
	}
	if err := guard.Forget(t.Context(), peek(t, guard, key)); !errors.Is(err, httplock.ErrNoRecord) {
		t.Errorf("forgotten twice: %v, want that there is nothing", err)
	}
	h.mended = true
	site.do(request{user: user, key: "k"}).fresh(t, http.StatusCreated, "2")
	site.do(request{user: user, key: "k"}).replayed(t, http.StatusCreated, "2")
}

// testResolveKnown: a run in progress has the first word about itself.
func testResolveKnown(t *testing.T, s *suite) {
	stage, guard := newStage(t), s.idempotent(t, held(t)...)
	site, r := s.mount(t, stage, guard), request{user: "resolve-known", key: "k"}
	first := site.aside(t.Context(), r)
	receive(t, stage.entered, "the run")
	key := idempotentKey(t, r.user, r.key)
	if err := guard.(operated).Resolve(t.Context(), peek(t, guard, key), receipt); !errors.Is(err, core.ErrInProgress) {
		t.Errorf("resolved while it runs: %v", err)
	}
	if err := guard.(operated).Forget(t.Context(), peek(t, guard, key)); !errors.Is(err, core.ErrInProgress) {
		t.Errorf("forgotten while it runs: %v", err)
	}
	close(stage.leave)
	receive(t, first, "the answer").fresh(t, http.StatusCreated, "done")
	site.do(r).replayed(t, http.StatusCreated, "done")
}

// testResolveByHand: what a failed run has not done, and no retry will, an operator has done.
func testResolveByHand(t *testing.T, s *suite) {
	h, guard := &failing{}, s.idempotent(t)
	site, r := s.mount(t, h, guard), request{user: "by-hand", key: "k"}
	site.do(r).want(t, http.StatusInternalServerError)
	if err := guard.(operated).Resolve(t.Context(), peek(t, guard, idempotentKey(t, r.user, r.key)), receipt); err != nil {
		t.Fatal(err)
	}
	site.do(r).replayed(t, http.StatusCreated, "receipt 7")
	h.ran(t, 1)
}

// testResolveOnce: a guard that does not replay tells where the thing is.
func testResolveOnce(t *testing.T, s *suite) {
	for user, answer := range map[string][]byte{"once-location": receipt, "once-nil": nil} {
		h, guard := &failing{}, s.once(t, held(t)...)
		site, r := s.mount(t, h, guard), request{user: user}
		site.do(r).want(t, http.StatusInternalServerError)
		if err := guard.(operated).Resolve(t.Context(), peek(t, guard, userKey(t, user)), answer); err != nil {
			t.Fatal(err)
		}
		a := site.do(r)
		a.refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
		if got := a.header.Get("Location"); got != map[bool]string{true: "/receipts/7"}[answer != nil] {
			t.Errorf("%s: Location %q", user, got)
		}
		h.ran(t, 1)
	}
}

// testWrongKeys: neither word about a wrong key is taken, and none of them is nil.
func testWrongKeys(t *testing.T, s *suite) {
	const user = "wrong-keys"
	_, _, guard := s.unknown(t, user)
	path, err := httplock.NewKey("path:id", "1")
	if err != nil {
		t.Fatal(err)
	}
	right := idempotentKey(t, user, "k")
	more, err := httplock.Join(path, right)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		key  httplock.Key
		want error
	}{
		"another user":    {idempotentKey(t, "nobody", "k"), nil},
		"another key":     {idempotentKey(t, user, "other"), nil},
		"the scope alone": {userKey(t, user), httplock.ErrKeyShape},
		"one part more":   {more, httplock.ErrKeyShape},
		"no key":          {httplock.Key{}, httplock.ErrKeyRequired},
	} {
		seen, err := guard.PeekKey(t.Context(), test.key)
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
		if test.want != nil {
			continue
		}
		if err := guard.Forget(t.Context(), seen); !errors.Is(err, httplock.ErrNoRecord) {
			t.Errorf("%s: forgot, %v, want that there is nothing", name, err)
		}
		if err := guard.Resolve(t.Context(), seen, receipt); !errors.Is(err, httplock.ErrNoRecord) {
			t.Errorf("%s: resolved, %v, want that there is nothing", name, err)
		}
	}
	for _, seen := range []core.Record{{}, {Key: "order:7", State: core.StateUnknown}} {
		forgot, resolved := guard.Forget(t.Context(), seen), guard.Resolve(t.Context(), seen, nil)
		if !errors.Is(forgot, core.ErrInvalidName) || !errors.Is(resolved, core.ErrInvalidName) {
			t.Errorf("record of %q: %v, %v", seen.Key, forgot, resolved)
		}
	}
	if r, err := guard.PeekKey(t.Context(), right); err != nil || r.State != core.StateUnknown {
		t.Errorf("record %+v, error %v, want it as it was", r, err)
	}
	if r, err := guard.Peek(t.Context(), user, `"k"`); err != nil || r.State != core.StateUnknown {
		t.Errorf("by texts: record %+v, error %v, want it as it was", r, err)
	}
	for _, parts := range [][]string{nil, {user}, {user, "k", "k"}} {
		if r, err := guard.Peek(t.Context(), parts...); !errors.Is(err, httplock.ErrKeyShape) {
			t.Errorf("%q: record %+v, error %v, want %v", parts, r, err, httplock.ErrKeyShape)
		}
	}
}

// testKeysOfOthers: a key that would lead to the record of another guard is refused.
func testKeysOfOthers(t *testing.T, s *suite) {
	mine, other := must(t)(s.Once(s.locks, ByID, unhurried(nil)...)), s.once(t)
	r := request{user: "keys-of-others"}
	for _, guard := range []Guard{mine, other} {
		s.mount(t, &counter{}, guard).do(r).want(t, http.StatusCreated)
	}
	key := userKey(t, r.user)
	if _, err := mine.(operated).PeekKey(t.Context(), key); !errors.Is(err, httplock.ErrKeyShape) {
		t.Errorf("read the record of another guard: %v", err)
	}
	if err := other.(operated).Forget(t.Context(), peek(t, other, key)); err != nil {
		t.Errorf("the guard whose record it is: %v", err)
	}
}

// testRecords: an operator finds the records of a user without their keys, and can decide about each.
func testRecords(t *testing.T, s *suite) {
	const user = "records"
	site, h, guard := s.unknown(t, user)
	h.mended = true
	site.do(request{user: user, key: "later"}).fresh(t, http.StatusCreated, "2")
	site.do(request{user: "records-of-another", key: "k"}).want(t, http.StatusCreated)
	records, err := guard.Records(t.Context(), user)
	if err != nil || len(records) != 2 {
		t.Fatalf("records %+v, error %v, want two", records, err)
	}
	if !bytes.HasSuffix(records[0].Value, []byte("\r\n\r\n2")) || records[1].State != core.StateUnknown {
		t.Errorf("records %+v, want the later one with its answer first, then the unknown one", records)
	}
	key := idempotentKey(t, user, "k")
	if got, want := records[1].Key, key.Name([]byte("sixteen bytes or more")); got != want {
		t.Errorf("record of %q, want %q", got, want)
	}
	if err := guard.Resolve(t.Context(), records[1], receipt); err != nil {
		t.Fatal(err)
	}
	site.do(request{user: user, key: "k"}).replayed(t, http.StatusCreated, "receipt 7")
	if err := guard.Forget(t.Context(), records[0]); err != nil {
		t.Fatal(err)
	}
	site.do(request{user: user, key: "later"}).want(t, http.StatusCreated)
	h.ran(t, 4)
	if _, err := guard.Records(t.Context(), user, "k"); !errors.Is(err, httplock.ErrKeyShape) {
		t.Errorf("records of a key that is no scope: %v", err)
	}
}

// testRecordsCounted: records that are counted are listed as well.
func testRecordsCounted(t *testing.T, s *suite) {
	guard := s.idempotent(t, core.WithQuota(10))
	s.mount(t, &counter{}, guard).do(request{user: "counted", key: "k"}).want(t, http.StatusCreated)
	if list, err := guard.(operated).Records(t.Context(), "counted"); err != nil || len(list) != 1 {
		t.Errorf("records %+v, error %v, want one", list, err)
	}
}

// testRecordsUnlisted: no list is not an empty list.
func testRecordsUnlisted(t *testing.T, s *suite) {
	for _, guard := range []Guard{s.once(t), s.once(t, held(t)...), s.idempotent(t)} {
		if list, err := guard.(operated).Records(t.Context(), "unlisted"); err == nil {
			t.Errorf("records %+v without a list", list)
		}
	}
}

// testResolveChecked: what cannot be replayed is refused before it is recorded.
func testResolveChecked(t *testing.T, s *suite) {
	const user = "resolve-checked"
	site, _, guard := s.unknown(t, user)
	key := idempotentKey(t, user, "k")
	seen := peek(t, guard, key)
	for name, text := range map[string]string{
		"no status": "", "an informational status": "HTTP/1.1 102 Processing", "a large status": "HTTP/1.1 1000 Large",
		"a large body":      "HTTP/1.1 200 OK\nContent-Type: a/b\n\n" + strings.Repeat("x", 256<<10+1),
		"a cookie":          "HTTP/1.1 200 OK\nSet-Cookie: session=1\n\n",
		"a body of no type": "HTTP/1.1 200 OK\n\nbody",
	} {
		if err := guard.Resolve(t.Context(), seen, []byte(text)); err == nil {
			t.Errorf("%s was recorded", name)
		}
	}
	if err := guard.Resolve(t.Context(), seen, []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	a := site.do(request{user: user, key: "k"}).replayed(t, http.StatusOK, "")
	if a.header.Get("Content-Type") != "text/plain" {
		t.Errorf("header %v", a.header)
	}
}

// testRecordLabel: a record says for which route it is, by its pattern: the path may have a user's data.
func testRecordLabel(t *testing.T, s *suite) {
	const user = "record-label"
	_, _, guard := s.unknown(t, user)
	r, err := guard.PeekKey(t.Context(), idempotentKey(t, user, "k"))
	if err != nil || r.Label != "POST /orders/{id}" {
		t.Errorf("record of %q, %v", r.Label, err)
	}
}
