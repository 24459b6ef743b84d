package mcp_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/holdfast-go/holdfast/core"
	recipe "github.com/holdfast-go/holdfast/examples/messages/mcp"
	"github.com/holdfast-go/holdfast/locktest"
)

type payment struct {
	Order string `json:"order"`
}

type receipt struct {
	Order  string `json:"order"`
	Number int64  `json:"number"`
}

// TestOnce: a call that is repeated gets the first answer, another key and another user act again, and a call without key is refused.
func TestOnce(t *testing.T) {
	ctx := t.Context()
	var charged atomic.Int64
	who := "alice"
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "pay"}, recipe.Once(locktest.New(t), "pay", func(*mcp.CallToolRequest) string { return who },
		func(ctx context.Context, _ *mcp.CallToolRequest, p payment) (*mcp.CallToolResult, receipt, error) {
			if core.KeyHash(ctx) == "" {
				t.Error("no key for the bank")
			}
			return nil, receipt{p.Order, charged.Add(1)}, nil
		}))
	serverSide, clientSide := mcp.NewInMemoryTransports()
	served, err := server.Connect(ctx, serverSide, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(ctx, clientSide, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	call := func(key string) *mcp.CallToolResult {
		t.Helper()
		result, err := session.CallTool(ctx, &mcp.CallToolParams{
			Name: "pay", Arguments: payment{"42"}, Meta: mcp.Meta{recipe.KeyField: key},
		})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	number := func(r *mcp.CallToolResult) float64 {
		t.Helper()
		content, _ := r.StructuredContent.(map[string]any)
		n, _ := content["number"].(float64)
		return n
	}
	for range 3 {
		if r := call("1"); r.IsError || number(r) != 1 || len(r.Content) != 1 {
			t.Errorf("%+v", r)
		}
	}
	if r := call("2"); number(r) != 2 {
		t.Errorf("%+v", r)
	}
	who = "bob"
	if r := call("1"); number(r) != 3 {
		t.Errorf("%+v", r)
	}
	if r := call(""); !r.IsError || charged.Load() != 3 {
		t.Errorf("%+v, charged %d times", r, charged.Load())
	}
}
