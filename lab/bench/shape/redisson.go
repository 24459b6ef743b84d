package shape

import "github.com/redis/go-redis/v9"

// RedissonName is the name of [Redisson], which others are compared with.
const RedissonName = "redisson-shape"

// Redisson does what the scripts of Redisson's RLock do for a free name: a hash of owner and hold count, with an expiry,
// and a message to waiters. It has no fencing token and no memory of releases. Redisson itself also reads and writes a
// key, by which a repeated unlock gets the same answer, so its own scripts cost more.
//
// A grant returns OK, where Redisson's script returns nil: go-redis makes an error of nil, with 20 allocations, which are
// no part of the shape.
func Redisson() Shape {
	lock := redis.NewScript(`
		if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
			redis.call('hincrby', KEYS[1], ARGV[2], 1)
			redis.call('pexpire', KEYS[1], ARGV[1])
			return 'OK'
		end
		return redis.call('pttl', KEYS[1])`)
	unlock := redis.NewScript(`
		if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then
			return nil
		end
		if redis.call('hincrby', KEYS[1], ARGV[3], -1) > 0 then
			redis.call('pexpire', KEYS[1], ARGV[2])
			return 0
		end
		redis.call('del', KEYS[1])
		redis.call('publish', KEYS[2], ARGV[1])
		return 1`)
	return Shape{
		Name: RedissonName, Scripts: []*redis.Script{lock, unlock},
		Lock: func(h *Hold) Command {
			return Command{lock, []string{h.key()}, []any{milliseconds(TTL), h.id()}}
		},
		Granted: equals("OK"),
		Unlock: func(h *Hold, _ any) Command {
			return Command{unlock, []string{h.key(), "redisson_lock__channel:{" + h.key() + "}"}, []any{0, milliseconds(TTL), h.id()}}
		},
		Released: equals(int64(1)),
	}
}
