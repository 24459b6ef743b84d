module github.com/holdfast-go/holdfast/middleware/connect

go 1.25.0

require (
	connectrpc.com/connect v1.19.0
	github.com/holdfast-go/holdfast v0.0.0
	github.com/holdfast-go/holdfast/middleware/internal/rpc v0.0.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20240318140521-94a12d6c2237
	google.golang.org/protobuf v1.36.12
)

require go.uber.org/goleak v1.3.0 // indirect

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/redis/go-redis/v9 v9.20.1 // indirect
	go.uber.org/atomic v1.11.0 // indirect
)

replace (
	github.com/holdfast-go/holdfast => ../../
	github.com/holdfast-go/holdfast/middleware/internal/rpc => ../internal/rpc
)
