package suites

import "github.com/holdfast-go/holdfast/lab/suites/guards/installed"

// A Suite is the tests of a module, and where it gets its guards.
type Suite struct {
	Name     string
	Module   string
	Packages []string // whose tests run
	Guard    string   // the package below guards
	Guards   []string // the kinds that it installs, one per run
	Needs    []string // our modules beside the root
	Package  string   // the name of the module's package
	Imports  string   // what Hook needs
	Hook     string   // a function of the type of the guard's Install, which does nothing
	Patches  []Patch  // that call it
	Flags    func(redis string) []string
	Interop  bool // it has programs that test each other
	Accepted []Accepted
}

// A Patch replaces a text in a file of a module that stands there once.
type Patch struct{ File, Before, After string }

// Accepted is a difference that is legitimate, of a test and its parts, with some guards or with all.
type Accepted struct {
	Package, Test string
	Guards        []string
	Reason        string
}

// Args returns further flags of the test binary.
func (s Suite) Args(redis string) []string {
	if s.Flags == nil {
		return nil
	}
	return s.Flags(redis)
}

// places are the guards of HTTP, in front of all middlewares of a route and right in front of its handler.
var places = []string{
	"exclusive", "exclusive" + installed.Innermost,
	"once", "once" + installed.Innermost,
	"idempotent", "idempotent" + installed.Innermost,
}

// What differs with some of them.
var (
	outermost        = []string{"exclusive", "once", "idempotent", "replayed"}
	innermost        = []string{"exclusive" + installed.Innermost, "once" + installed.Innermost, "idempotent" + installed.Innermost}
	recording        = []string{"once", "once" + installed.Innermost, "idempotent", "idempotent" + installed.Innermost}
	idempotent       = []string{"idempotent", "idempotent" + installed.Innermost}
	innermostRecords = []string{"once" + installed.Innermost, "idempotent" + installed.Innermost}
)

// Reasons for more than one difference.
const (
	counted  = "is a handler of the route, and counts as one"
	answers  = "has fiber's ErrorHandler answer, and middlewares around it see the response in place of the error: docs/http.md"
	left     = "refuses a request whose context has ended"
	early    = "refuses early data, of trusted proxies too: docs/http-responses.md"
	ahead    = "reads a streamed body ahead, so it is no stream any more: docs/http.md"
	panicked = "discards what a handler has written that panics, so the recovery around the guard answers: docs/http-responses.md"
	walked   = "is listed by Walk, as the first middleware of each route"
	reset    = "refuses a stream that has ended, so the handler that the test waits for does not run"
	refused  = "answers 413 too, but before the handler runs, whose own error the test expects"
	gzipped  = "has Echo answer an error before the middlewares around the guard get it, so Gzip compresses the answer: docs/http.md"
)

// All are the suites.
var All = []Suite{
	{
		Name: "gin", Module: "github.com/gin-gonic/gin", Packages: []string{".", "./ginS"}, Guard: "gin", Guards: places,
		Package: "gin", Hook: "func(handlers HandlersChain) HandlersChain { return handlers }",
		Patches: []Patch{
			{"gin.go", "	root.addRoute(path, handlers)\n", "	root.addRoute(path, HoldfastSuite(handlers))\n"},
			{"gin_test.go", "	expectValue := 10000\n", "	expectValue := 100\n"}, // of requests inside of each other: each holds its key
		},
		Accepted: []Accepted{
			{".", "TestRouterGroupBasicHandle", nil, "is a handler of the chain, in which the test prints the index of another one"},
			{".", "TestPanicClean", innermostRecords, panicked},
			{".", "TestPanicWithAbort", innermostRecords, panicked},
			{".", "TestPanicWithAbortHandler", innermostRecords, panicked},
			{".", "TestPanicWithBrokenPipe", innermostRecords, panicked},
		},
	},
	{
		Name: "chi", Module: "github.com/go-chi/chi/v5", Packages: []string{"./..."}, Guard: "chi", Guards: append([]string{"replayed", "replayed" + installed.Innermost}, places...),
		Package: "chi", Imports: "net/http", Hook: "func(route, outermost bool) []func(http.Handler) http.Handler { return nil }",
		Patches: []Patch{
			{"mux.go", "Chain(mx.middlewares...).Handler(handler)", "Chain(append(HoldfastSuite(method&mSTUB == 0, true), mx.middlewares...)...).Handler(handler)"},
			{"mux.go", "		h = handler\n", "		h = handler\n		for _, guard := range HoldfastSuite(method&mSTUB == 0, true) {\n			h = guard(h)\n		}\n"},
			{"mux.go", "	// Build endpoint handler with inline", "	for _, guard := range HoldfastSuite(method&mSTUB == 0, false) {\n		handler = guard(handler)\n	}\n	// Build endpoint handler with inline"},
			{"mux_test.go", "			for range 10000 {", "			for range 100 {"}, // of clients that are gone, in each of 100 goroutines
		},
		Accepted: []Accepted{
			{".", "TestWalkInlineMiddlewaresAcrossSubrouter", outermost, walked},
			{".", "TestWalkMiddlewaresAcrossGroupAndRoute", outermost, walked},
		},
	},
	{
		Name: "Echo 4", Module: "github.com/labstack/echo/v4", Packages: []string{"./..."}, Guard: "echo4", Guards: places,
		Needs: []string{"/middleware/echo4"}, Package: "echo", Hook: "func(middlewares []MiddlewareFunc) []MiddlewareFunc { return middlewares }",
		Patches: []Patch{{
			"echo.go", "		h := applyMiddleware(handler, middlewares...)\n		return h(c)\n	})\n\n	if e.OnAdd",
			"		h := applyMiddleware(handler, HoldfastSuite(middlewares)...)\n		return h(c)\n	})\n\n	if e.OnAdd",
		}},
		Accepted: []Accepted{
			{"middleware", "TestGzipErrorReturned", nil, gzipped},
			{"middleware", "TestBodyLimitBindRejectsOversizeBodies", idempotent, refused},
			{"middleware", "TestDecompressBindingLimitStatus", idempotent, refused},
			{"middleware", "TestDecompressDefaultLimitStreaming", idempotent, refused},
			{
				"middleware", "TestTimeoutWithFullEchoStack", recording,
				"holds the response back until it is recorded, so the handler does not notice that Timeout has answered; the client gets the same",
			},
		},
	},
	{
		Name: "Echo 5", Module: "github.com/labstack/echo/v5", Packages: []string{"./..."}, Guard: "echo", Guards: places,
		Needs: []string{"/middleware/echo"}, Package: "echo", Hook: "func(middlewares []MiddlewareFunc) []MiddlewareFunc { return middlewares }",
		Patches: []Patch{{
			"echo.go", "	ri, err := e.router.Add(route)\n",
			"	route.Middlewares = HoldfastSuite(route.Middlewares)\n	ri, err := e.router.Add(route)\n",
		}},
		Accepted: []Accepted{
			{"middleware", "TestGzip_ErrorReturned", nil, gzipped},
			{
				"middleware", "TestStaticHTML5PreservesMatchedHandlerNotFound", innermost,
				"has Echo answer the 404 before the middlewares around the guard get it, so Static finds a response: docs/http.md",
			},
		},
	},
	{
		Name: "fiber", Module: "github.com/gofiber/fiber/v3", Packages: []string{".", "./client", "./middleware/..."}, Guard: "fiber", Guards: places,
		Needs: []string{"/middleware/fiber"}, Package: "fiber", Hook: "func(use bool, handlers []Handler) []Handler { return handlers }",
		Patches: []Patch{{
			"router.go", "		isUse := method == methodUse\n",
			"		isUse := method == methodUse\n		handlers := HoldfastSuite(isUse, handlers)\n",
		}},
		Accepted: []Accepted{
			{".", "TestRemoveRoute", nil, counted},
			{".", "Test_AddRoute_MergeHandlers", nil, counted},
			{".", "Test_App_DisablePreParseMultipartForm", nil, ahead},
			{".", "Test_App_ErrorHandler_HandlerStack", nil, answers},
			{".", "Test_App_ErrorHandler_RouteStack", nil, answers},
			{".", "Test_App_Group_Mount", nil, counted},
			{".", "Test_App_HandlersCount", nil, counted},
			{".", "Test_App_Mount", nil, counted},
			{".", "Test_App_Mount_Express_Behavior", nil, counted},
			{".", "Test_App_Mount_Nested", nil, counted},
			{".", "Test_App_Mount_RootPath_Nested", nil, counted},
			{".", "Test_App_ReadBodyStream", nil, ahead},
			{".", "Test_Integration_App_ServerErrorHandler_MiddlewareCombinationHeaders", nil, answers},
			{".", "Test_Route_Registration_Prevent_Duplicate_With_Middleware", nil, counted},
			{"middleware/cache", "TestCacheCleanupPropagatesRequestContextToDelete", nil, left},
			{"middleware/cache", "TestCacheEvictionPropagatesRequestContextToDelete", nil, left},
			{"middleware/cache", "TestCacheStorageOperationsObserveRequestContext", nil, left},
			{"middleware/earlydata", "Test_EarlyData", nil, early},
			{"middleware/earlydata", "Test_EarlyDataNext", nil, early},
			{"middleware/encryptcookie", "Test_Middleware_EncryptionErrorDoesNotMaskNextError", nil, answers},
			{"middleware/idempotency", "Test_New_HandlerError", nil, answers},
			{"middleware/limiter", "TestLimiterFixedPropagatesRequestContextToStorage", nil, left},
			{"middleware/limiter", "TestLimiterSlidingPropagatesRequestContextToStorage", nil, left},
			{"middleware/logger", "Test_Logger", nil, answers},
			{"middleware/logger", "Test_Logger_LoggerToWriter", nil, answers},
		},
	},
	{
		Name: "asynq", Module: "github.com/hibiken/asynq", Packages: []string{"."}, Guard: "asynq", Guards: []string{"exclusive", "once"},
		Package: "asynq", Hook: "func(handler Handler) Handler { return handler }",
		Patches: []Patch{
			{"processor.go", "p.handler.ProcessTask(ctx, task)", "HoldfastSuite(p.handler).ProcessTask(ctx, task)"},
			{"servemux.go", "	for i := len(mux.mws) - 1; i >= 0; i-- {", "	h = HoldfastSuite(h)\n	for i := len(mux.mws) - 1; i >= 0; i-- {"},
		},
		Flags: func(redis string) []string { return []string{"-redis_addr", redis} },
	},
	{
		Name: "robfig/cron", Module: "github.com/robfig/cron/v3", Packages: []string{"."}, Guard: "cron", Guards: []string{"exclusive", "leader"},
		Package: "cron", Hook: "func(job Job) Job { return job }",
		Patches: []Patch{{"cron.go", "c.chain.Then(cmd)", "HoldfastSuite(c.chain.Then(cmd))"}},
	},
	{
		Name: "grpc-go", Module: "google.golang.org/grpc", Packages: []string{".", "./test", "./stats", "./health"}, Guard: "grpc",
		Guards: []string{"exclusive", "once", "idempotent"}, Needs: []string{"/middleware/grpc", "/middleware/internal/rpc"},
		Package: "grpc", Hook: "func(*[]UnaryServerInterceptor, *[]StreamServerInterceptor) {}",
		Patches: []Patch{
			{
				"server.go", "	chainUnaryServerInterceptors(s)\n",
				"	HoldfastSuite(&s.opts.chainUnaryInts, &s.opts.chainStreamInts)\n	chainUnaryServerInterceptors(s)\n",
			},
			// These two would wait for the handler until the test binary times out, and the tests behind them would not run.
			{
				"test/end2end_test.go", "		<-handlerDone\n	})\n}\n\nfunc (s) TestClientSendDataAfterCloseSend(",
				"		select {\n		case <-handlerDone:\n		case <-time.After(defaultTestTimeout):\n			t.Error(\"the handler has not run\")\n		}\n	})\n}\n\nfunc (s) TestClientSendDataAfterCloseSend(",
			},
			{
				"test/end2end_test.go", "		<-handlerDone\n	})\n}\n\nfunc (s) TestClientResourceExhaustedCancelFullDuplex(",
				"		select {\n		case <-handlerDone:\n		case <-time.After(defaultTestTimeout):\n			t.Error(\"the handler has not run\")\n		}\n	})\n}\n\nfunc (s) TestClientResourceExhaustedCancelFullDuplex(",
			},
		},
		Accepted: []Accepted{
			{"test", "Test/ClientInitialHeaderEndStream", nil, reset},
			{"test", "Test/ClientRequestBodyErrorCancelStreamingInput", nil, reset},
			{"test", "Test/ClientSendDataAfterCloseSend", nil, reset},
		},
		Interop: true,
	},
}
