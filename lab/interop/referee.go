package interop

import (
	"context"
	_ "embed"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed lua/enter.lua
	enterSource string
	//go:embed lua/leave.lua
	leaveSource string

	enterScript = redis.NewScript(enterSource)
	leaveScript = redis.NewScript(leaveSource)
)

// referee is the server of the test, which holders tell that they are inside and which sees whether two are.
type referee struct{ rdb *redis.Client }

func newReferee(addr string) *referee {
	return &referee{redis.NewClient(&redis.Options{Addr: addr})}
}

func refereeKeys(name string) []string {
	return []string{"inside:" + name, Journal(name), Met(name)}
}

// Journal is the list of holds of that lock, see leave.lua.
func Journal(name string) string { return "journal:" + name }

// Met is the list of those who were inside together although they must not be.
func Met(name string) string { return "met:" + name }

// enter returns the time by the clock of Redis.
func (r *referee) enter(ctx context.Context, name, who, how string) (string, error) {
	return enterScript.Run(ctx, r.rdb, refereeKeys(name), who, how).Text()
}

// leave records the hold, which began at these times, by the clock of Redis and by the machine's.
func (r *referee) leave(ctx context.Context, name, who, how, entered string, began, token int64) error {
	return leaveScript.Run(ctx, r.rdb, refereeKeys(name), who, how, entered, began, now(), token).Err()
}
