package ginlock

import "github.com/holdfast-go/holdfast/middleware"

// Shared makes an option of one that all adapters have, for the suite that they share.
func Shared(o middleware.Option) Option { return shared(o) }
