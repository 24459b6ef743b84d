package transport

import (
	"strings"

	"github.com/redis/go-redis/v9"
)

// SameSlot reports whether one script may take all these keys. Outside of a Cluster there is nothing to split them,
// except in clients of other makes, which may spread keys by rules of their own.
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

// Slot is the hash slot of a key: CRC16 (XMODEM) of its hash tag, modulo 16384.
// Source: Redis Cluster specification, key distribution model.
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
