//go:build upstream

package router

// What Watermill's own tests import, for go.mod.
import (
	_ "github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	_ "github.com/ThreeDotsLabs/watermill/pubsub/tests"
	_ "github.com/pkg/errors"
	_ "github.com/stretchr/testify/assert"
	_ "github.com/stretchr/testify/require"

	_ "github.com/holdfast-go/holdfast/msglock/watermill"
)
