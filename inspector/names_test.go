package inspector_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/inspector"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// oddNames are names that mean something to HTML, to addresses, to forms or to a terminal.
var oddNames = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `{user}:{7}`, `a/../b//c?d=e&f#g%41+`, "línea 订单 🔒",
	"two\r\nlines\n", "tab\t\x1b[31mred", " spaces ", "\u202Egnp.exe", "filler\u3164", "bad\xff\xfeutf8", "javascript:alert(1)", `back\slash'quote`,
	strings.Repeat("long ", 100) + "end",
}

// TestOddNames: a name is text in every page, its links lead to it, and it can be forced. Nothing of it becomes a tag.
func TestOddNames(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := newClient(t, server.Client())
	s := newSite(t, locks, inspector.WithActions(asAda))
	for _, name := range oddNames {
		mustLock(t, locks.Mutex(name))
		if _, err := locks.Once(name).Do(t.Context(), func(context.Context) ([]byte, error) { return nil, nil }); err != nil {
			t.Fatal(err)
		}
	}
	list, records, process := s.get(http.StatusOK, ""), s.get(http.StatusOK, "records"), s.get(http.StatusOK, "process")
	for _, name := range oddNames {
		q := "?name=" + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
		body := s.get(http.StatusOK, "lock"+q)
		for _, page := range []string{list, records, process, body, s.get(http.StatusOK, "record"+q)} {
			lacks(t, page, "<script>alert", "<img", "\x1b", "\u202E", "\u3164", `href="javascript:`)
		}
		contains(t, list, `"./lock`+q+`"`)
		contains(t, body, "force-unlock"+q, seal.NamesOf(locks).Digest(name, false))
		typed := name
		if strings.ContainsAny(name, "\n\t\u202E\u3164") || !utf8.ValidString(name) || strings.TrimSpace(name) != name || len(name) > 120 {
			typed = seal.NamesOf(locks).Digest(name, false)
			contains(t, s.get(http.StatusOK, "force-unlock"+q), "the digest, because the name is hard to type")
		}
		s.act(http.StatusOK, "force-unlock"+q, typed)
		if info, err := locks.Inspect(t.Context(), name); err != nil || info.Mode != "" {
			t.Errorf("%q: %+v, %v", name, info, err)
		}
		s.act(http.StatusOK, "forget"+q, strings.ReplaceAll(typed, seal.NamesOf(locks).Digest(name, false), seal.NamesOf(locks).Digest(name, true)))
		if r, err := locks.Once(name).Peek(t.Context()); err != nil || r.State != core.StateNone {
			t.Errorf("%q: %+v, %v", name, r, err)
		}
	}
}

// TestPrefixIsNoPattern: a prefix is no pattern, and text in the page.
func TestPrefixIsNoPattern(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	s := newSite(t, locks)
	mustLock(t, locks.Mutex(`*"<b>`))
	mustLock(t, locks.Mutex("other"))
	body := s.get(http.StatusOK, "?prefix="+url.QueryEscape(`*"<b>`))
	contains(t, body, "lock?name=%2A%22%3Cb%3E")
	lacks(t, body, "other", "<b>\"")
}

// TestFindKeyHash: the key_hash of a guard's line leads to the record of the request, whoever's it is, also as it stands in the log.
func TestFindKeyHash(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	s := newSite(t, locks)
	const hash, user = "nMbtemkE3hgwerKqVfQjiQT1LOFpE20lgzOTM-1GekY", "-Mbtem_E3hgwerKqVfQjiQT1LOFpE20lgzOTM-1GekY"
	held(t, locks, "http:{"+user+"}:"+hash, time.Hour)
	mustLock(t, locks.Mutex("order:42"))
	for q, want := range map[string]string{
		hash:                        "<span class=\"name\">http:{" + user + "}:" + hash + "</span>",
		"key_hash=" + hash:          "Record of Once",
		" key=" + hash + "\n":       "Record of Once",
		`"key_hash":"` + hash + `"`: "Record of Once",
		"lock=" + seal.NamesOf(locks).Digest("order:42", false):   "<h2>Holders</h2>",
		" " + seal.NamesOf(locks).Digest("order:42", false) + " ": "<h2>Holders</h2>",
		user:           "has this digest",
		hash[1:] + "!": "No lock of this name is held",
	} {
		contains(t, s.get(http.StatusOK, "find?q="+url.QueryEscape(q)), want)
	}
}

// TestFind: an exact name leads to its page, a digest to the name that has it.
func TestFind(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := newClient(t, server.Client())
	s := newSite(t, locks)
	mustLock(t, locks.Mutex("order:42"))
	keyHash := strings.Repeat("a", 43)
	for _, key := range []string{"pay:1", "order:42", "http:{" + strings.Repeat("b", 43) + "}:" + keyHash} {
		if _, err := locks.Once(key).Do(t.Context(), func(context.Context) ([]byte, error) { return nil, nil }); err != nil {
			t.Fatal(err)
		}
	}
	for q, want := range map[string]string{
		"pay:1": "Record of Once",
		seal.NamesOf(locks).Digest("order:42", false): "<h1><span class=\"name\">order:42</span></h1>",
		seal.NamesOf(locks).Digest("pay:1", true):     "Record of Once",
		"order:42": "record?name=order%3A42", // a lock and a record of one name
		"nothing":  "No lock of this name is held",
		"01234567": "has this digest",
		keyHash:    "Record of Once", // the key_hash of a line of the log
	} {
		contains(t, s.get(http.StatusOK, "find?q="+url.QueryEscape(q)), want)
	}
}
