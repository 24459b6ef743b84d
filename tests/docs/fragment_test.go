package docs_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

// imports are the packages that a fragment may use without importing them, by the name that it uses.
var imports = map[string]string{
	"context": "context", "json": "encoding/json", "errors": "errors", "fmt": "fmt", "log": "log", "slog": "log/slog",
	"http": "net/http", "os": "os", "time": "time", "tls": "crypto/tls", "sql": "database/sql",
	"testing": "testing", "synctest": "testing/synctest", "httptest": "net/http/httptest", "rand": "crypto/rand",
	"atomic": "sync/atomic",
	"gin":    "github.com/gin-gonic/gin", "asynq": "github.com/hibiken/asynq", "redis": "github.com/redis/go-redis/v9",
	"cron":      "github.com/robfig/cron/v3",
	"asynqlock": "github.com/holdfast-go/holdfast/asynqlock",
	"core":      "github.com/holdfast-go/holdfast/core",
	"cronlock":  "github.com/holdfast-go/holdfast/cronlock",
	"ginlock":   "github.com/holdfast-go/holdfast/middleware/gin",
	"httplock":  "github.com/holdfast-go/holdfast/middleware/nethttp",
	"lockdebug": "github.com/holdfast-go/holdfast/lockdebug",
	"locktest":  "github.com/holdfast-go/holdfast/locktest",
}

// declares matches the first line of what a fragment declares beside its statements.
var declares = regexp.MustCompile(`^(?:func (?:\([^)]*\) )?\w|type \w|import )`)

// wrap makes a file of a fragment. names tells whether the package is that of testdata.
func (s snippet) wrap(names bool) string {
	var top, body []string
	lines := strings.Split(strings.TrimRight(s.Code, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		position := fmt.Sprintf("//line %s:%d", s.page, s.Line+i)
		if !declares.MatchString(lines[i]) {
			body = append(body, position, lines[i])
			continue
		}
		top = append(top, position)
		last := i
		if open := lines[i][len(lines[i])-1]; open == '{' || open == '(' {
			for last < len(lines)-1 && lines[last] != "}" && lines[last] != ")" {
				last++
			}
		}
		top = append(top, lines[i:last+1]...)
		i = last
	}
	declared := strings.Join(top, "\n")
	given := ""
	for name, path := range imports {
		if names && !strings.Contains(declared, `"`+path+`"`) {
			given += fmt.Sprintf("import %s %q\n", name, path)
		}
	}
	return "package snippet\n" + given + declared +
		"\nfunc _() error {\n" + strings.Join(body, "\n") + "\nreturn nil\n}\n"
}

// file returns the Go file that stands for the snippet, and whether it is a fragment.
func (s snippet) file(names bool) (text string, fragment bool) {
	if _, err := parser.ParseFile(token.NewFileSet(), "", s.Code, parser.PackageClauseOnly); err == nil {
		return fmt.Sprintf("//line %s:%d\n%s", s.page, s.Line, s.Code), false
	}
	return s.wrap(names), true
}
