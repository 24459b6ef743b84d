module github.com/holdfast-go/holdfast

go 1.25.0

require (
	github.com/google/uuid v1.6.0
	github.com/redis/go-redis/v9 v9.19.0
	go.uber.org/goleak v1.3.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
)
