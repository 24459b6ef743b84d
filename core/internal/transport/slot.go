package transport

import (
	"strings"

	"github.com/redis/go-redis/v9"
)

// IsOneServer returns true if rdb is known to send all commands to one server or Sentinel group.
func IsOneServer(rdb redis.UniversalClient) bool {
	_, ok := rdb.(*redis.Client)
	return ok
}

// SameSlot returns true if one script may take all these keys, of which there must be one at least. It returns false if a
// Cluster has them in several slots. It also returns false for clients that are not of go-redis or spread keys over several
// servers, because their rules are not known.
func SameSlot(rdb redis.UniversalClient, keys []string) bool {
	switch rdb.(type) {
	case *redis.Client:
		return true
	case *redis.ClusterClient:
		for _, key := range keys[1:] {
			if Slot(key) != Slot(keys[0]) {
				return false
			}
		}
		return true
	}
	return false
}

// Slot returns the hash slot of a key: CRC16 (XMODEM) of its hash tag, modulo 16384. The hash tag is the part between the
// first "{" and the next "}". If there is no such part, or it is empty, the whole key is the hash tag. Source: Redis Cluster
// specification, key distribution model.
func Slot(key string) uint16 {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			key = tag
		}
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
	}
	return crc % 16384
}
