package main

import (
	"context"
	"errors"
	"fmt"
)

// removeKeys deletes all keys of the sale from a Redis that others use too: its queue, locks and records. They
// all have the random name of the sale in theirs. The last token stays for two hours: all locks of a Redis share it. The
// replicas must be closed.
func (s *site) removeKeys() error {
	if s.config.redisURL == "" {
		return nil
	}
	const batch = 1000
	ctx := context.Background()
	err := s.rdb.SRem(ctx, "asynq:queues", s.queue).Err()
	for cursor := uint64(0); err == nil; {
		var keys []string
		keys, cursor, err = s.rdb.Scan(ctx, cursor, "*"+s.queue+"*", batch).Result()
		if err == nil && len(keys) > 0 {
			err = s.rdb.Unlink(ctx, keys...).Err()
		}
		if cursor == 0 {
			break
		}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("keys of the sale are left in Redis, all with %q in their names", s.queue), err)
	}
	return nil
}
