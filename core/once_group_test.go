package core_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/luasource"
)

// TestSizesInAGroup: what a script makes of a size is not less than it, and not much more.
func TestSizesInAGroup(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	source := luasource.Text("once/common", "once/group") + "\nreturn string.format('%.0f', classSize(sizeClass(ARGV[1])))"
	for bytes := int64(1); bytes < 1<<40; bytes = bytes*9/8 + 1 {
		got, err := redis.NewScript(source).Run(context.Background(), rdb, []string{"{a}"}, bytes).Int64()
		if err != nil || got < bytes || float64(got) > float64(bytes)*1.25+1 {
			t.Errorf("%d bytes count %d, %v", bytes, got, err)
		}
	}
	for content := 0; content < 257<<20; content = content*9/8 + 1 {
		want := core.Counted(content)
		got, err := redis.NewScript(source).Run(context.Background(), rdb, []string{"{a}"}, want).Int64()
		if err != nil || got != want || want < int64(content)+1536 || float64(want) > float64(content+1536)*1.25 {
			t.Errorf("%d bytes of content count %d here and %d there, %v", content, want, got, err)
		}
	}
}
