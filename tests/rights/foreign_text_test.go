package rights_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// nastyTexts are what a co-tenant, a server, a proxy or a caller may write.
var nastyTexts = map[string]string{
	"five megabytes": strings.Repeat("\x1b[2J\u202e", 700_000), "escapes": "\x1b]0;title\x07\x1b[31m", "C1": "\u009b31m", "bidi": "\u202egnp.exe\u2066",
	"lines": "a\r\nlevel=INFO msg=forged\u2028b", "NUL": "\x00{}", "broken": "\xff\xfe", "tags": "\U000e0041",
}

// wantShown fails the test for a text that is long, or has what people cannot see.
func wantShown(t *testing.T, text string) {
	t.Helper()
	const most = 20_000
	if len(text) > most {
		t.Errorf("%d bytes: %.300q", len(text), text)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) || !utf8.ValidString(text) {
		t.Errorf("not visible: %.300q", text)
	}
}

// callsWith are calls that get a name, or a text in its place.
func callsWith(ctx context.Context, c *core.Client, text string) map[string]error {
	errs := make(map[string]error)
	_, errs["TryLock"] = c.Mutex(text).TryLock(ctx)
	_, errs["Fair"] = c.Fair(text).TryLock(ctx)
	_, errs["Semaphore"] = c.Semaphore(text, 2).TryLock(ctx)
	_, errs["Multi"] = core.Multi(c.Mutex(text), c.Mutex("other")).TryLock(ctx)
	_, errs["Multi, twice"] = core.Multi(c.Mutex(text), c.Mutex(text)).TryLock(ctx)
	_, errs["Inspect"] = c.Inspect(ctx, text)
	_, errs["ForceUnlock"] = c.ForceUnlock(ctx, text)
	_, errs["ForceUnlockHolder"] = c.ForceUnlockHolder(ctx, text, core.Holder{})
	_, errs["Leader"] = c.Election(text).Leader(ctx)
	_, errs["Begin"] = c.Once(text).Begin(ctx)
	_, errs["Peek"] = c.Once(text).Peek(ctx)
	_, errs["WithQuota"] = c.Once(text, core.WithQuota(5)).Begin(ctx)
	errs["Forget"] = c.Once(text).Forget(ctx, core.Record{})
	errs["Resolve"] = c.Once(text).Resolve(ctx, core.Record{}, nil)
	_, errs["Records"] = c.GroupRecords(ctx, text)
	_, errs["Records, state"] = coretest.RecordPage(ctx, c, "", "", 0, text)
	for _, err := range seal.NamesOf(c).FindDigest(ctx, text) {
		errs["FindDigest"] = err
		break
	}
	_, errs["ListLocks, cursor"] = coretest.LockPage(ctx, c, "", text, 10)
	_, errs["WithOwner"] = c.Mutex("a", core.WithOwner(text)).TryLock(ctx)
	return errs
}

// TestForeignTextInErrors: whatever text a caller has given, Redis has stored or a server has replied, an error is one line that is
// not long, and that shows each of its characters. So is each error that it wraps and that the log may have.
func TestForeignTextInErrors(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	for what, text := range nastyTexts {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var log coretest.Record
			locks := coretest.NewClient(t, server.Client(), core.WithLogger(coretest.TextLogger(&log)))
			rdb := server.Client()
			rdb.AddHook(coretest.Answering{Answer: func(string) (any, error) { return nil, coretest.ErrorReply("ERR " + text) }})
			odd := coretest.NewClient(t, rdb, core.WithLogger(coretest.TextLogger(&log)))
			hurried := server.Client()
			hurried.AddHook(coretest.Answering{Answer: func(string) (any, error) { return []any{text, text, []any{text}}, nil }})
			wrong := coretest.NewClient(t, hurried, core.WithLogger(coretest.TextLogger(&log)))
			for set, errs := range map[string]map[string]error{
				"name": callsWith(ctx, locks, text), "error of Redis": callsWith(ctx, odd, "name"), "reply": callsWith(ctx, wrong, "name"),
			} {
				for call, err := range errs {
					if err != nil {
						t.Run(set+", "+call, func(t *testing.T) { wantShown(t, err.Error()) })
					}
				}
			}
			cause, cancel := context.WithCancelCause(ctx)
			cancel(errors.New(text))
			if _, err := locks.Mutex("a").Lock(cause); err != nil {
				wantShown(t, err.Error())
			}
			key := "unknown-" + what
			if err := coretest.MustBegin(t, locks.Once(key)).Hold(ctx, text); err != nil {
				wantShown(t, err.Error())
			}
			_, err := locks.Once(key).Begin(ctx)
			coretest.WantErr(t, err, core.ErrOutcomeUnknown)
			wantShown(t, err.Error())
			for line := range strings.Lines(log.String()) {
				wantShown(t, strings.TrimSuffix(line, "\n"))
			}
		})
	}
}

// TestForeignTextIsRedis: a bounded text still wraps the error of go-redis.
func TestForeignTextIsRedis(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	rdb.AddHook(coretest.Answering{Answer: func(string) (any, error) { return nil, coretest.ErrorReply("WRONGTYPE \x1b") }})
	_, err := coretest.NewClient(t, rdb).Mutex("a").TryLock(context.Background())
	coretest.WantErr(t, err, core.ErrWrongType)
	var reply redis.Error
	if !errors.As(err, &reply) || reply.Error() != "WRONGTYPE \x1b" {
		t.Errorf("%v does not wrap the reply", err)
	}
}
