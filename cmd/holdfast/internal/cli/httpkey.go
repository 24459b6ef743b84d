package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/holdfast-go/holdfast/middleware"
)

// httpKeyCommand prints the name of the lock or record of a guarded request.
type httpKeyCommand struct {
	Method  string `arg:"" optional:"" help:"Method of the route, such as POST. Omit the route for a key without one."`
	Pattern string `arg:"" optional:"" help:"Pattern of the route, such as /orders or /cart/{id}."`

	User           string   `placeholder:"USER" help:"The principal that the guard finds in the context."`
	Part           []string `sep:"none" placeholder:"NAME=VALUE" help:"A further part of the key, such as path:id=7 or header:X-Cart=9, in the order of the guard."`
	IdempotencyKey string   `placeholder:"KEY" help:"The client's Idempotency-Key, for the record of an Idempotent guard."`
	SecretFile     string   `type:"path" placeholder:"FILE" help:"File with the secret of the guard's WithKeySecret, all its bytes. Or set $$HOLDFAST_KEY_SECRET."`
}

// Run is called by the parser.
func (c *httpKeyCommand) Run(env *environment) error {
	secret := []byte(os.Getenv("HOLDFAST_KEY_SECRET"))
	if c.SecretFile != "" {
		var err error
		if secret, err = os.ReadFile(c.SecretFile); err != nil {
			return usageError("%s", err)
		}
	}
	key, err := c.key()
	if err != nil {
		return usageError("%s", err)
	}
	if env.flags.JSON {
		return env.printJSON(map[string]string{"name": key.Name(secret)})
	}
	fmt.Fprintln(env.stdout, key.Name(secret))
	return nil
}

// key joins the parts in the order of the guards: the route, the user, further parts, the key of the client.
func (c *httpKeyCommand) key() (middleware.Key, error) {
	var parts []middleware.Key
	add := func(key middleware.Key, err error) error {
		parts = append(parts, key)
		return err
	}
	if c.Method != "" {
		if err := add(middleware.RouteKey(c.Method, c.Pattern)); err != nil {
			return middleware.Key{}, err
		}
	}
	if c.User != "" {
		if err := add(middleware.PrincipalKey(c.User)); err != nil {
			return middleware.Key{}, err
		}
	}
	for _, part := range c.Part {
		name, value, found := strings.Cut(part, "=")
		if !found {
			return middleware.Key{}, fmt.Errorf("--part %s: NAME=VALUE is needed", part)
		}
		if err := add(middleware.NewKey(name, value)); err != nil {
			return middleware.Key{}, err
		}
	}
	if c.IdempotencyKey != "" {
		if err := add(middleware.IdempotencyKey(c.IdempotencyKey)); err != nil {
			return middleware.Key{}, err
		}
	}
	return middleware.Join(parts...)
}
