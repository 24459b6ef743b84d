// The tests that need frameworks, SQL drivers or a browser. They are a module of their own so that none of these reaches the
// go.mod of users.
module github.com/holdfast-go/holdfast/tests/integration

go 1.25.0

require (
	buf.build/go/protovalidate v0.12.0
	connectrpc.com/connect v1.19.0
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
	github.com/go-chi/chi/v5 v5.5.0
	github.com/google/uuid v1.6.0
	github.com/gorilla/handlers v1.5.2
	github.com/gorilla/mux v1.8.1
	github.com/grpc-ecosystem/go-grpc-middleware/v2 v2.3.2
	github.com/holdfast-go/holdfast v0.0.0
	github.com/holdfast-go/holdfast/inspector v0.0.0
	github.com/holdfast-go/holdfast/middleware/connect v0.0.0
	github.com/holdfast-go/holdfast/middleware/grpc v0.0.0
	github.com/holdfast-go/holdfast/otellock v0.0.0
	github.com/robfig/cron/v3 v3.0.1
	go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc v0.65.0
	go.opentelemetry.io/otel/sdk v1.43.0
	go.opentelemetry.io/otel/trace v1.43.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260128011058-8636f8732409
	google.golang.org/grpc v1.80.0
	google.golang.org/protobuf v1.36.12
)

require (
	buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go v1.36.6-20250425153114-8976f5be98c1.1 // indirect
	cel.dev/expr v0.25.1 // indirect
	cloud.google.com/go/compute/metadata v0.9.0 // indirect
	github.com/antlr4-go/antlr/v4 v4.13.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/cncf/xds/go v0.0.0-20251210132809-ee656c7534f5 // indirect
	github.com/envoyproxy/protoc-gen-validate v1.3.0 // indirect
	github.com/felixge/httpsnoop v1.0.3 // indirect
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/go-logr/logr v1.4.3 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/google/cel-go v0.25.0 // indirect
	github.com/holdfast-go/holdfast/middleware/internal/rpc v0.0.0 // indirect
	github.com/redis/go-redis/v9 v9.20.1 // indirect
	github.com/stoewer/go-strcase v1.3.0 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel v1.43.0 // indirect
	go.opentelemetry.io/otel/metric v1.43.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/exp v0.0.0-20240325151524-a685a6edb6d8 // indirect
	golang.org/x/net v0.58.0 // indirect
	golang.org/x/oauth2 v0.34.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260120221211-b8f7ae30c516 // indirect
)

replace (
	github.com/holdfast-go/holdfast => ../../
	github.com/holdfast-go/holdfast/inspector => ../../inspector
)

replace (
	github.com/holdfast-go/holdfast/middleware/connect => ../../middleware/connect
	github.com/holdfast-go/holdfast/middleware/grpc => ../../middleware/grpc
	github.com/holdfast-go/holdfast/middleware/internal/rpc => ../../middleware/internal/rpc
	github.com/holdfast-go/holdfast/otellock => ../../otellock
)
