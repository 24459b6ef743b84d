package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit/markdown"
)

// notRun are the commands in blocks of the pages that neither .ci/run nor a test runs, with the reason. The tests check
// their targets, packages, tests and flags all the same.
var notRun = map[string]string{
	"go get github.com/holdfast-go/holdfast": ofReader,
	"go mod init example.com/try":            ofReader,
	"go mod tidy":                            ofReader,
	"go run .":                               ofReader,
	"git clone https://github.com/holdfast-go/holdfast":                         "needs the published repository",
	"HOLDFAST_REDIS_SERVER=$(tools/servers.sh valkey-8.1) go test -race ./core": "needs the servers that make -C lab versions downloads",
	"make -C lab versions":                     "downloads four servers and takes minutes for each",
	"go test -race ./core":                     "make test runs it",
	"go test ./tests/client -run TestSetupIsInspected": "make test runs it",
	"grep -rn is too old for locks core docs":  "TestLogLines finds the text in both",
	"git tag -a v0.1.0 -m v0.1.0":              "for a release",
	"git push origin v0.1.0":                   "for a release",
	"GORELEASER_CURRENT_TAG=v0.1.0 goreleaser release --clean --skip=validate": "for a release",
	"cp -r bin/release/. .": "for a release",
	"git commit -am Require v0.1.0 in the modules beside the root":         "for a release",
	"git tag -a gocronlock/v0.1.0 -m v0.1.0":                               "for a release",
	"git push origin gocronlock/v0.1.0":                                    "for a release",
	"git revert HEAD":                                                      "for a release",
	"goreleaser release --snapshot --clean --skip=docker":                  "needs GoReleaser, which no other step needs",
	"go run ./examples/flashsale -picture FILE":                            "runs two sales; TestPictureShowsBothSales draws without them",
	"make -C lab fault-long DURATION=1h":                                   "takes an hour; make -C lab fault runs the same rounds, shorter",
	"make -C lab simulate":                                                 "takes minutes; make -C lab fault runs fewer seeds",
	"make -C lab mutants":                                                  "takes long; make -C lab fault runs three of them",
	"go run ./faults/recheck faults/results/round-003-memory-seed-3.jsonl": "needs the history of a failed round",
	"go test ./tests/lease -run TestLateReturns|TestLateLosses -v -late 60":       "measures for a minute on a quiet machine",
	"go run ./examples/flashsale -serve":                                   "runs until Ctrl-C",
	"REDIS_URL=redis://localhost:6379 go run ./examples/flashsale":         "needs a Redis at that address; TestSaleOnServer starts one at another",
}

// ofReader is the reason why no test checks a command that runs in the module of the reader.
const ofReader = "needs the published module"

// illustrations are the blocks that are neither code to run nor commands, by page and first line, with the reason.
var illustrations = map[string]string{
	"CONTRIBUTING.md: | `holdfast: Redis cannot write its append-only file: a restart loses locks and records` | warn | Look at the disk of the server. |": "a row for the exercise",
	"CONTRIBUTING.md: Warn of an append-only file that cannot be written":                                                                                  "a commit message for the exercise",
	"docs/command.md: 30 2 * * *   holdfast exec -n -E 0 backup:db -- backup.sh":                                                                           "a crontab; TestPageCommands of cmd/holdfast runs its lines",
	"docs/command.md: [Service]":                                   "a unit of systemd; TestUnit of cmd/holdfast has it verified",
	`docs/migration.md: @Scheduled(cron = "0 0 3 * * *")`:          "Java of ShedLock, to show what is replaced",
	`docs/redisson.md: RLock lock = redisson.getLock("order:42");`: "Java of Redisson; make -C lab interop runs a program with the same calls",
}

// ranBlocks are the blocks that tests of this package run, by page and first word.
var ranBlocks = []string{
	"docs/operations.md: redis-cli", // TestInspectionCommands
	"docs/operations.md: printf",    // TestDigestCommands
	"docs/operations.md: for",       // TestAllDigests
	"docs/operations.md: DEL",       // TestFreedByHand
	"docs/operations.md: WARN",      // TestRunbookOfAHang of cmd/holdfast compares it with a log
	"docs/operations.md: lock",      // TestRunbookOfAHang compares it with "holdfast show"
	"docs/redis.md: ACL",            // TestACLCommand
	"docs/redis.md: redis-cli",      // TestACLCommand
	"docs/command.md: holdfast",     // TestPageCommands of cmd/holdfast
}

// sqlPages are the pages whose blocks of SQL tests/integration/fencing runs.
var sqlPages = []string{"docs/fencing.md", "docs/guarantees.md"}

// TestBlocks: .ci/run or a test runs each block of the pages, or a list above says why not.
func TestBlocks(t *testing.T) {
	t.Parallel()
	run := readMakefile(t).inCI(t)
	unused := make(map[string]bool)
	for name := range notRun {
		unused[name] = true
	}
	for name := range illustrations {
		unused[name] = true
	}
	for _, name := range ranBlocks {
		unused[name] = true
	}
	for _, p := range pages(t) {
		blocks, _ := p.Split()
		for _, b := range blocks {
			for _, mistake := range unaccounted(p, b, run, unused) {
				t.Errorf("%s:%d: %s", p.Path, b.Line, mistake)
			}
		}
	}
	for name := range unused {
		t.Errorf("a list of this test has %q, but no page has it", name)
	}
}

// unaccounted returns what nobody runs in a block. It deletes from unused the entries of the lists that it needs.
func unaccounted(p markdown.Page, b markdown.Block, run, unused map[string]bool) (mistakes []string) {
	first, _, _ := strings.Cut(strings.TrimSpace(b.Code), "\n")
	word, _, _ := strings.Cut(first, " ")
	if ran := p.Path + ": " + word; slices.Contains(ranBlocks, ran) {
		delete(unused, ran)
		return nil
	}
	if _, ok := illustrations[p.Path+": "+first]; ok {
		delete(unused, p.Path+": "+first)
		return nil
	}
	switch {
	case b.Language == "go": // TestSnippets
		return nil
	case b.Language == "sql" && slices.Contains(sqlPages, p.Path):
		return nil
	case b.Language != "sh":
		return []string{fmt.Sprintf("no test runs a block of %q here; run it or list it", b.Language)}
	}
	for _, c := range parseShell(b.Code) {
		name := c.String()
		delete(unused, name)
		if _, listed := notRun[name]; !listed && !run[name] {
			mistakes = append(mistakes, "neither .ci/run nor a test runs this; run it or list it: "+name)
		}
	}
	return mistakes
}

// TestCommandsExist: targets, variables, programs, packages, tests and flags exist wherever a page names a command, in
// blocks and in the text.
func TestCommandsExist(t *testing.T) {
	t.Parallel()
	makefile := readMakefile(t)
	checked := 0
	for _, p := range pages(t) {
		for _, c := range commandsOf(p) {
			checked++
			for _, mistake := range commandMistakes(makefile, c) {
				t.Errorf("%s: `%s`: %s", p.Path, c, mistake)
			}
		}
	}
	if checked < 90 {
		t.Errorf("found only %d commands", checked)
	}
}

// known are the first words of the commands that the tests check in the text of the pages.
var known = regexp.MustCompile("`((?:[A-Z][A-Z_]*=\\S+ )*(?:cd|make|go (?:run|test|doc|get|tool)|\\.ci/|tools/)[^`]*|[A-Z][A-Z_]*=[^` ]+)`")

// commandsOf returns the commands of a page: those of its shell blocks, and those in backquotes.
func commandsOf(p markdown.Page) (all []command) {
	blocks, prose := p.Split()
	for _, b := range blocks {
		if b.Language == "sh" {
			all = append(all, parseShell(b.Code)...)
		}
	}
	for _, found := range known.FindAllStringSubmatch(strings.Join(prose, "\n"), -1) {
		all = append(all, parseShell(strings.ReplaceAll(found[1], "\n", " "))...)
	}
	return all
}

// commandMistakes returns what does not exist of a command.
func commandMistakes(m makefile, c command) (mistakes []string) {
	note := func(mistake string) {
		if mistake != "" {
			mistakes = append(mistakes, mistake)
		}
	}
	for _, assigned := range c.env {
		name, _, _ := strings.Cut(assigned, "=")
		if read, err := environment(name); err != nil || !read && !m.variables[name] {
			note("no program reads the variable " + name)
		}
	}
	switch {
	case len(c.args) == 0, notRun[c.String()] == ofReader:
	case c.args[0] == "make":
		note(m.mistake(c))
	case c.args[0] == "go":
		note(goMistake(c))
	case strings.Contains(c.args[0], "/"):
		info, err := os.Stat(filepath.Join(root, c.args[0]))
		if err != nil || info.Mode()&0o111 == 0 {
			note("no such program")
		}
	}
	return mistakes
}

// TestBrokenCommandsAreFound shows that the checks can fail.
func TestBrokenCommandsAreFound(t *testing.T) {
	t.Parallel()
	makefile := readMakefile(t)
	for line, broken := range map[string]bool{
		"make test":                                          false,
		"make tests":                                         true,
		"make -C lab fault SEED=7":                           false,
		"make -C lab fault SEEED=7":                          true,
		"SEED=7":                                             false,
		"NO_SUCH_VARIABLE=7 make test":                       true,
		"go run ./examples/flashsale -unguarded":             false,
		"go run ./examples/flashsale -unguard":               true,
		"go run ./examples/flashsales":                       true,
		"go run ./core":                                      true,
		"go test ./tests/sentinel -run TestOutages -outages 10":        false,
		"go test ./core -run TestNoSuchThing":                true,
		"go test ./core -run 'TestOutages|TestNoSuch'":       true,
		"go test ./tests/sentinel -run TestOutages -outage 10":         true,
		"go test -run xxx -bench Guard ./core":               true,
		"go test ./nowhere":                                  true,
		"cd lab/bench && GOWORK=off go run . -only pairs":    false,
		"cd lab/bench && go run . -only pairs":               true,
		"cd lab/bench && GOWORK=off go run . -no-such pairs": true,
		".ci/run": false,
		".ci/ran": true,
	} {
		var mistakes []string
		for _, c := range parseShell(line) {
			mistakes = append(mistakes, commandMistakes(makefile, c)...)
		}
		if (len(mistakes) > 0) != broken {
			t.Errorf("%s: found %q", line, mistakes)
		}
	}
}

// TestNewBlocksAreFound: a block that is on no list is a mistake, whatever its language.
func TestNewBlocksAreFound(t *testing.T) {
	t.Parallel()
	run := readMakefile(t).inCI(t)
	for text, want := range map[string]int{
		"```sh\nmake test\n```":          0,
		"```go\nx := 1\n```":             0,
		"```sh\nmake -C lab bench\n```":  1,
		"```sh\nredis-cli FLUSHALL\n```": 1,
		"```sh\ncurl a\nmake test\n```":  1,
		"```\nmake test\n```":            1,
		"```text\nACL LIST\n```":         1,
		"```sql\nSELECT 1\n```":          1,
	} {
		p := markdown.Parse("docs/page.md", text)
		blocks, _ := p.Split()
		if found := unaccounted(p, blocks[0], run, make(map[string]bool)); len(found) != want {
			t.Errorf("%s: found %q, expected %d", text, found, want)
		}
	}
}
