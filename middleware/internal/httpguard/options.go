package httpguard

import (
	"cmp"
	"slices"

	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Option is an option of a guard: one of core, one that all guards share, one of package httplock, or one of an adapter.
type Option = guards.Option

// option is one of package httplock, which the adapters of all frameworks take.
type option struct {
	seal.Mark
	apply func(*Config)
}

// NewOption makes an option of package httplock, for that package. Apply may call [Config.Refuse].
func NewOption(name string, apply func(*Config)) Option {
	return option{seal.Mark{Name: "httplock." + name}, apply}
}

// Refuse keeps the first error of an option, which is reported when the guard is made.
func (c *Config) Refuse(err error) { c.err = cmp.Or(c.err, err) }

// Adapter is what differs between the constructors of adapters.
type Adapter struct {
	// Package is the name of the adapter's package, for errors.
	Package string
	// Takes are the names of options that only this adapter has.
	Takes []string
	// Own is called for each option that is not one of core, of all guards or of package httplock.
	Own func(Option)
}

// Apply applies options in their order. It ignores nil options. An invalid option, and one that makes no sense for the guard, is
// an error when the guard is made.
func (c *Config) Apply(a Adapter, opts ...Option) {
	place := c.place
	place.Name = a.Package + "." + place.Name
	place.Takes = slices.Concat(place.Takes, a.Takes)
	defaults := c.Config
	sorted, err := place.Sort(opts, func(o Option) {
		switch own, ok := o.(option); {
		case ok:
			own.apply(c)
		case seal.MarkOf(o).Name == "core.WithRetention":
			c.RetentionUntil = nil // the last one counts
		case a.Own != nil:
			a.Own(o)
		}
	})
	if !sorted.Given("core.WithWait") {
		sorted.Wait = defaults.Wait
	}
	if !sorted.Given("core.WithMaxValue") {
		sorted.MaxValue = defaults.MaxValue
	}
	c.Config = sorted
	c.Refuse(err)
}
