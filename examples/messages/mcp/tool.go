// Package mcp guards a tool of an MCP server: a client or an agent that calls it again, because an answer was lost, gets the first
// answer, and the tool does not act twice. The caller sends a key with each call, in the metadata of the request.
package mcp

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/msglock"
)

// KeyField is where the metadata of a call has its key.
const KeyField = "idempotencyKey"

// call is a call of a tool. It is the message of the guard.
type call[In any] struct {
	request *mcp.CallToolRequest
	input   In
}

// answer is what a tool has returned, as it is recorded.
type answer[Out any] struct {
	Result *mcp.CallToolResult `json:"result"`
	Output Out                 `json:"output"`
}

// Once returns a handler for mcp.AddTool that acts once for each user, tool and key. user returns who is calling, for instance from
// the token of the request: it is part of the key, so that nobody gets the answer for somebody else.
func Once[In, Out any](
	locks *core.Client, tool string, user func(*mcp.CallToolRequest) string, handler mcp.ToolHandlerFor[In, Out], opts ...msglock.Option,
) mcp.ToolHandlerFor[In, Out] {
	key := func(_ context.Context, c call[In]) (string, error) {
		key, _ := c.request.Params.Meta[KeyField].(string)
		if key == "" {
			return "", fmt.Errorf("the call has no %s in its metadata", KeyField)
		}
		return fmt.Sprintf("%q %q", user(c.request), key), nil
	}
	guarded := msglock.OnceValue(locks, "mcp "+tool, key, func(ctx context.Context, c call[In]) (answer[Out], error) {
		result, output, err := handler(ctx, c.request, c.input)
		return answer[Out]{result, output}, err
	}, opts...)
	return func(ctx context.Context, request *mcp.CallToolRequest, input In) (*mcp.CallToolResult, Out, error) {
		a, err := guarded(ctx, call[In]{request, input})
		return a.Result, a.Output, err
	}
}
