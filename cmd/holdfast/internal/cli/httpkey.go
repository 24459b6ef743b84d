package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/httprecord"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// httpKeyCommand prints the name of the lock or record of a guarded request.
type httpKeyCommand struct {
	Method  string `arg:"" optional:"" help:"Method of the request, such as POST. Omit it if the guard's key has no ByRoute, but a wildcard of the route: --part path:id=7."`
	Pattern string `arg:"" optional:"" help:"Route as it is registered, such as /cart/{id} or, in gin, /cart/:id, behind what http.StripPrefix removes. Of a route with many paths, which ends in a slash or in {rest...}, the path of the request."`

	User           string    `placeholder:"USER" help:"The user: ByContext, ByKey, ByPrincipal."`
	Part           []string  `sep:"none" placeholder:"KIND[:NAME]=VALUE" help:"A further part of the key, in the order of the guard: path:id=7 (ByPathValue, ByParam), header:X-Cart=9, cookie:cart=9, query:cart=9, form:cart=9, json:/cart/id=9 (a string may be without quotes), host=shop.example.com, ip=192.0.2.1, constant=all, unscoped, key:tenant=7 (NewKey). The route and the user come first, unless route and user=USER stand among the parts."`
	IdempotencyKey string    `placeholder:"KEY" help:"The client's Idempotency-Key, for the record of an Idempotent guard."`
	Secret         keySecret `embed:""`
	Router         string    `enum:"auto,nethttp,gin" default:"auto" help:"How the route is written: nethttp, also for chi, or gin, also for Echo. Defaults to gin if a segment begins with a colon or an asterisk and a name."`
	Offline        bool      `help:"Do not ask Redis what is stored under the name."`
}

// Run is called by the parser. The name is printed even if Redis cannot be asked.
func (c *httpKeyCommand) Run(env *environment) error {
	all, err := env.open() // which does not connect yet
	if err != nil {
		return err
	}
	defer all.close()
	secret, err := c.Secret.read(func(secret []byte) error {
		_, err := httplock.NewOnce(all.locks, httplock.Unscoped(), httplock.WithKeySecret(secret))
		return err
	})
	if err != nil {
		return usageError("%s", err)
	}
	parts, err := c.parts()
	if err != nil {
		return usageError("%s", err)
	}
	key, err := parts.join()
	if err != nil {
		return usageError("%s", err)
	}
	found := jsonKey{Name: key.Name(secret), KeyHash: key.HashWith(secret), Parts: parts.functions()}
	if !env.flags.JSON {
		if _, err := fmt.Fprintln(env.stdout, found.Name); err != nil {
			return err
		}
	}
	if !c.Offline {
		return found.report(env, all.locks)
	}
	if env.flags.JSON {
		return env.printJSON(found)
	}
	return nil
}

// keySecret is where the secret of a guard is.
type keySecret struct {
	SecretFile string `placeholder:"FILE" help:"File with the secret of the guard's WithKeySecret, all its bytes. Or set $$HOLDFAST_KEY_SECRET."`
}

// read returns the secret, nil if there is none. One that the guard refuses is refused.
func (c keySecret) read(try func(secret []byte) error) ([]byte, error) {
	secret, where := []byte(os.Getenv("HOLDFAST_KEY_SECRET")), "HOLDFAST_KEY_SECRET"
	if c.SecretFile != "" {
		var err error
		where = "--secret-file"
		if secret, err = os.ReadFile(c.SecretFile); err != nil {
			return nil, err
		}
	}
	if len(secret) == 0 {
		return nil, nil
	}
	if err := try(secret); err != nil {
		return nil, fmt.Errorf("%s: %s", where, bareError(err))
	}
	return secret, nil
}

// jsonKey is the name of a request in JSON. What was not asked for is left out.
type jsonKey struct {
	Name    string   `json:"name"`
	KeyHash string   `json:"key_hash"`
	Parts   []string `json:"parts,omitempty"`
	Lock    *string  `json:"lock,omitempty"`   // its mode, "" if it is free
	Record  *string  `json:"record,omitempty"` // its state, "none" without one
}

// report asks Redis what is stored under the name, and says so.
func (k jsonKey) report(env *environment, locks *core.Client) error {
	s, err := look(env, locks, k.Name)
	if err != nil && env.ctx.Err() != nil {
		return context.Cause(env.ctx)
	}
	if err == nil {
		mode, record := string(s.lock.Mode), stateOf(s.record)
		k.Lock, k.Record = &mode, &record
	}
	if env.flags.JSON {
		if failed := env.printJSON(k); failed != nil {
			return failed
		}
	}
	if err != nil {
		return fmt.Errorf("it is not known whether a record or a lock has this name (--offline does not ask): %w", err)
	}
	fmt.Fprintf(env.stderr, "holdfast: %s\n", s.stored(k.Parts))
	return nil
}

// stored returns what is stored under the name of a request.
func (s state) stored(functions []string) string {
	var found []string
	if s.record.State != core.StateNone {
		text := fmt.Sprintf("a record has this name: %s, attempt %d", stateOf(s.record), s.record.Attempt)
		if !s.record.Began.IsZero() {
			text += ", begun at " + s.record.Began.Local().Format(time.RFC3339)
		}
		found = append(found, text)
	}
	if s.lock.Mode != "" {
		found = append(found, fmt.Sprintf("a lock with this name is held (%s)", s.lock.Mode))
	}
	if len(found) > 0 {
		return strings.Join(found, "; ")
	}
	text := fmt.Sprintf("no record and no held lock has this name. It is made by Keys(%s): the guard needs the same parts in this order, "+
		"and the same secret and prefix", strings.Join(functions, ", "))
	if slices.Contains(functions, "ByRoute()") {
		text += ". If the guard has no ByRoute, leave out the method, and the route too unless a wildcard of it is a part"
	}
	return text
}

// parts returns the parts of the key in the order of the guard: the route and the user, unless they stand among the others,
// these, and the key of the client.
func (c *httpKeyCommand) parts() (keyParts, error) {
	route, err := c.route()
	if err != nil {
		return nil, err
	}
	texts := c.Part
	if c.User != "" {
		texts = append([]string{"user=" + c.User}, texts...)
	}
	if c.Method != "" && !slices.Contains(texts, "route") {
		texts = append([]string{"route"}, texts...)
	}
	var parts keyParts
	for _, text := range texts {
		p, err := newKeyPart(text, route)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	if c.IdempotencyKey == "" {
		return parts, nil
	}
	if len(parts) == 0 {
		return nil, errors.New("--idempotency-key: the scope of the guard is missing: --user, or another part")
	}
	value, fault := httprecord.ParseKey(c.IdempotencyKey)
	if fault != "" {
		return nil, fmt.Errorf("--idempotency-key %s: it %s", c.IdempotencyKey, fault)
	}
	key, err := httplock.IdempotencyKey(value)
	return append(parts, keyPart{key, "Idempotency-Key"}), err
}

// route returns the route of the arguments, the zero one without them. One argument may have method and pattern, as the patterns of
// http.ServeMux, or the pattern alone.
func (c *httpKeyCommand) route() (httpRoute, error) {
	if method, pattern, both := strings.Cut(c.Method, " "); both && c.Pattern == "" {
		c.Method, c.Pattern = method, strings.TrimSpace(pattern)
	}
	if strings.Contains(c.Method, "/") && c.Pattern == "" {
		c.Method, c.Pattern = "", c.Method
	}
	switch {
	case c.Pattern == "" && c.Router != "auto":
		return httpRoute{}, fmt.Errorf("--router %s is for a route, which is missing", c.Router)
	case c.Method != "" && c.Pattern == "":
		return httpRoute{}, fmt.Errorf("the route of %s is missing, such as: http-key %[1]s /orders", c.Method)
	case c.Method != strings.ToUpper(c.Method):
		return httpRoute{}, fmt.Errorf("the method %q: methods are in upper case, as clients send them", c.Method)
	case c.Pattern == "":
		return httpRoute{}, nil
	case c.Method == "" && !slices.ContainsFunc(c.Part, usesRoute):
		return httpRoute{}, fmt.Errorf("the method of the route %s is missing, such as: http-key POST %[1]s. If the guard's key has no "+
			"ByRoute, leave the route out, unless a wildcard of it is a part, as in --part path:id=7", c.Pattern)
	}
	pattern, gin, err := patternOf(c.Pattern, c.Router)
	return httpRoute{method: c.Method, written: c.Pattern, pattern: pattern, gin: gin, parts: c.Part}, err
}

// usesRoute reports whether a part is made of the route.
func usesRoute(part string) bool { return part == "route" || strings.HasPrefix(part, "path:") }
