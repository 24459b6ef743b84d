module github.com/holdfast-go/holdfast/middleware/echo

go 1.25.0

require (
	github.com/holdfast-go/holdfast v0.0.0
	github.com/labstack/echo/v5 v5.4.5
)

require (
	github.com/alicebob/miniredis/v2 v2.40.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/redis/go-redis/v9 v9.20.1 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/time v0.15.0 // indirect
)

replace github.com/holdfast-go/holdfast => ../../
