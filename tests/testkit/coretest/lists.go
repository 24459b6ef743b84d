package coretest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// ListAll walks over all pages of locks, and fails for an error. It begins again if Redis did not reply in time, as beside a
// slot that moves on a busy machine.
func ListAll(t testing.TB, locks *core.Client, prefix string) (found map[string]core.Entry) {
	t.Helper()
	testkit.Eventually(t, Within, "a whole walk", func() bool {
		found = make(map[string]core.Entry)
		for e, err := range locks.Locks(context.Background(), prefix) {
			switch {
			case errors.Is(err, core.ErrUnavailable):
				return false
			case err != nil:
				t.Fatalf("Locks: %v", err)
			}
			found[e.Name] = e
		}
		return true
	})
	return found
}

// Page is one page of the locks that are held, or of the records.
type Page struct {
	Locks   []core.Entry
	Records []core.RecordEntry
	Next    string
	Skipped int
}

// LockPage reads one page of locks, as the inspector does.
func LockPage(ctx context.Context, locks *core.Client, prefix, cursor string, limit int) (page Page, err error) {
	p := &seal.Page{Cursor: cursor, Limit: limit}
	for e, err := range locks.Locks(seal.WithPage(ctx, p), prefix) {
		if err != nil {
			return page, err
		}
		page.Locks = append(page.Locks, e)
	}
	page.Next, page.Skipped = p.Next, p.Skipped
	return page, nil
}

// RecordPage reads one page of records in one of the states, or of all.
func RecordPage(ctx context.Context, locks *core.Client, prefix, cursor string, limit int, states ...string) (page Page, err error) {
	p := &seal.Page{Cursor: cursor, Limit: limit, States: states}
	for r, err := range locks.Records(seal.WithPage(ctx, p), prefix) {
		if err != nil {
			return page, err
		}
		page.Records = append(page.Records, r)
	}
	page.Next = p.Next
	return page, nil
}

// PagesOf walks over all pages of that limit. It calls between before each page but the first.
func PagesOf(t testing.TB, locks *core.Client, prefix string, limit int, between func(page int)) map[string]int {
	t.Helper()
	found := make(map[string]int)
	cursor := ""
	for page := 0; page == 0 || cursor != ""; page++ {
		if page > 0 {
			between(page)
		}
		p, err := LockPage(context.Background(), locks, prefix, cursor, limit)
		if errors.Is(err, core.ErrUnavailable) {
			p, err = LockPage(context.Background(), locks, prefix, cursor, limit) // the same page, as the doc says
		}
		if err != nil {
			t.Fatalf("page %d: %v", page, err)
		}
		for _, e := range p.Locks {
			found[e.Name]++
		}
		cursor = p.Next
	}
	return found
}

// TokenOf returns the fencing token that the hash of a lock of one owner has, 0 if it has none.
func TokenOf(t testing.TB, rdb redis.UniversalClient, key string) int64 {
	t.Helper()
	fields, err := rdb.HMGet(context.Background(), key, "token", "mode").Result()
	if err != nil {
		t.Fatalf("read %s: %v", key, err)
	}
	text, _ := fields[0].(string)
	if mode, _ := fields[1].(string); text == "" {
		text = mode[strings.LastIndex(mode, " ")+1:] // in the compact state
	}
	token, _ := strconv.ParseInt(text, 10, 64)
	return token
}

// SeedLocks makes n locks that are held for an hour, as a Mutex in its compact state has them, and returns their names.
func SeedLocks(t testing.TB, rdb redis.UniversalClient, prefix string, n int) (names []string) {
	t.Helper()
	ctx := context.Background()
	for len(names) < n {
		_, err := rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for range min(5000, n-len(names)) {
				name := fmt.Sprint(prefix, len(names))
				names = append(names, name)
				pipe.HSet(ctx, "lock:"+name, fmt.Sprint("00000000-0000-4000-8000-000000000000:", len(names)), 1,
					"mode", fmt.Sprint(time.Hour.Milliseconds(), " ", time.Now().UnixMicro()))
				pipe.PExpire(ctx, "lock:"+name, time.Hour)
			}
			return nil
		})
		if err != nil {
			t.Fatalf("seed: %v", err)
		}
	}
	return names
}

// WantAll checks that each name was found. A name may have been found more than once.
func WantAll(t testing.TB, found map[string]int, names []string) {
	t.Helper()
	missing := 0
	for _, name := range names {
		if found[name] == 0 {
			missing++
		}
	}
	if missing > 0 || len(found) != len(names) {
		t.Errorf("%d of %d locks were not listed, %d others were", missing, len(names), len(found)-len(names)+missing)
	}
}
