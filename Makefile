# Two commands are enough: "go run -v ./examples/flashsale" and "make test". The rest is for developers.

SHELL   := bash
GO      ?= go
# Modules of this repository beside the root; each keeps its dependencies to itself.
MODULES := . cmd/holdfast examples faults gocronlock inspector inspector/internal/browser internal/fencing internal/frameworks otellock
# Those with a published package, whose tests have targets of their own.
BESIDE  := gocronlock inspector inspector/internal/browser otellock
COMMAND := cmd/holdfast
# All packages of all modules.
PACKAGES := $(MODULES:%=./%/...)
# Those with an API, which api/ lists.
PUBLISHED := . gocronlock inspector otellock
# The packages whose tests take longest come first, so that none of them runs alone at the end.
LONGEST := ./tests/strategies ./tests/rights ./tests/cluster ./examples/flashsale ./middleware/gin ./middleware/nethttp
TOOL    := GOWORK=off $(GO) tool -modfile=$(CURDIR)/tools/go.mod
# go test, which says at its end once more what failed; the argument is GOWORK.
gotest   = $(TOOL) gotestsum --format pkgname --format-hide-empty-pkg --hide-summary skipped --raw-command -- \
	env GOWORK=$(1) $(GO) test -json

.DEFAULT_GOAL := help

.PHONY: help
help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

# Those that are tested without the race detector. It would make the tests of the pages, of the Lua scripts against their
# models and of other frameworks take three times as long, and so it would the linking of small examples. Their goroutines
# are those of core and middleware, whose own tests have it.
PLAIN := ./internal/docs ./core/internal/lockscript ./core/internal/oncescript ./internal/frameworks/... ./examples/...

# One run over all modules, two packages at a time: most tests wait, but with three each has too little of a processor at
# times. "make lint" vets. Programs without data for debuggers (-w) take a third less time to link.
.PHONY: test
test: needed downloads ## run all tests of the library, most with the race detector, on real Redis servers
	@events=$$(mktemp); trap 'rm -f "$$events"' EXIT; export GOWORK=$(GOWORK); \
	plain=$$($(GO) list $(PLAIN) | grep -v '/flashsale$$') || exit; \
	raced=$$($(GO) list $(patsubst %,./%/...,$(filter-out $(BESIDE) $(COMMAND),$(MODULES))) | grep -vxF "$$plain") || exit; \
	$(TOOL) gotestsum --jsonfile "$$events" --format pkgname --format-hide-empty-pkg --hide-summary skipped --raw-command -- \
		env GOWORK=$(GOWORK) bash -c '$(GO) test -json -race -shuffle=on -vet=off -ldflags=-w -p 2 -timeout 20m $(LONGEST) $$1; \
			$(GO) test -json -shuffle=on -vet=off -p 2 $$2' tests "$$raced" "$$plain"; \
	GOWORK=off $(GO) -C tools run ./verdict "$$events"

# The tests of internal/docs compile the published modules with their tests, and the code that pages show of these modules.
# Those tests download nothing themselves, and skip what is missing.
SHOWN := bench gocronlock inspector internal/frameworks otellock
.PHONY: downloads
downloads:
	@$(GO) list -deps -test $(PUBLISHED:%=./%/...) >/dev/null || true
	@for m in $(SHOWN); do GOWORK=off $(GO) -C $$m list -deps -test ./... >/dev/null || true; done

.PHONY: test-modules
test-modules: needed ## run the tests of the modules beside the library, with exactly the dependencies of their go.mod
	@set -e; for m in $(BESIDE); do (cd $$m && $(call gotest,off) -race -shuffle=on -vet=off ./...); done

.PHONY: test-command
test-command: needed ## run the tests of the command, with real processes and terminals
	cd $(COMMAND) && $(call gotest,off) -race -shuffle=on -vet=off ./...

.PHONY: test-portable
test-portable: ## vet all packages, and run the tests that need no Redis server
	$(GO) vet ./... ./cmd/holdfast/... ./examples/... ./faults/... ./gocronlock/... ./inspector/... ./otellock/...
	$(GO) test -run '^Fuzz' ./core ./middleware ./asynqlock
	$(GO) test ./internal/docs ./internal/throttle ./examples/...
	$(GO) test -tags holdfast_simulation ./faults/simulate -seeds 4 -hours 0.5

# For each platform, the published modules and the command. The library has to compile with 32 bits too, and so have its tests.
PLATFORMS := linux/amd64 linux/arm64 darwin/arm64 windows/amd64 freebsd/amd64
.PHONY: platforms
platforms: ## compile the published modules and the command for each platform, and vet the library with 32 bits
	@set -e; export CGO_ENABLED=0 GOWORK=off; for platform in $(PLATFORMS); do for m in $(PUBLISHED) $(COMMAND); do \
		echo "$$platform $$m"; GOOS=$${platform%/*} GOARCH=$${platform#*/} $(GO) -C $$m build ./...; \
	done; done; \
	echo "linux/386 ."; GOOS=linux GOARCH=386 $(GO) vet ./...

.PHONY: stress
stress: needed ## run the tests 20 times over, to find flaky ones
	$(call gotest,$(GOWORK)) -race -shuffle=on -count=20 -timeout 60m ./...

# One failure does not keep the other servers from being tested.
.PHONY: versions
versions: needed ## run the tests on every supported version of Redis and Valkey; it downloads them, on Debian
	@servers=$$(tools/servers.sh) || exit; failed=; IFS=$$'\n'; \
	for server in $$servers; do \
		printf '\n== '; "$$server" --version; \
		HOLDFAST_REDIS_SERVER=$$server $(GO) test -race -shuffle=on -timeout 20m ./... || failed+=$$'\n'$$server; \
	done; \
	[ -z "$$failed" ] || { echo "failed on:$$failed" >&2; exit 1; }

# The race detector needs a C compiler, the tests need a Redis server. Nothing else is installed, and nothing if
# both are there.
.PHONY: needed
needed:
	@command -v "$${HOLDFAST_REDIS_SERVER:-redis-server}" >/dev/null && command -v "$${CC:-gcc}" >/dev/null && exit 0; \
	if ! command -v apt-get >/dev/null; then \
		echo "The tests need redis-server (6.2 or newer) and a C compiler in PATH. Install them first," >&2; \
		echo "for instance: brew install redis, or dnf install redis gcc. To use another server program," >&2; \
		echo "set HOLDFAST_REDIS_SERVER to its path." >&2; exit 1; \
	fi; \
	sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	echo "installing redis-server and gcc with apt-get" >&2; \
	$$sudo apt-get update -qq && \
	$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
		redis-server gcc libc6-dev >&2

# internal/fencing skips the SQL for a server that is not installed. It starts servers of its own.
.PHONY: databases
databases: ## install PostgreSQL and MariaDB with apt-get, for the tests of the SQL in docs/fencing.md
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && [ -x /usr/sbin/mariadbd ] && exit 0; \
	sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	echo "installing postgresql and mariadb-server-core with apt-get" >&2; \
	$$sudo apt-get update -qq && \
	$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
		postgresql mariadb-server-core mariadb-client-core >&2

# Without a real Prometheus, "make test" skips these.
.PHONY: observe-check
observe-check: needed ## let a Prometheus scrape the example of metrics, and ask it all of the dashboard and the alerts
	@command -v prometheus >/dev/null && command -v promtool >/dev/null && exit 0; \
	sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	echo "installing prometheus with apt-get" >&2; \
	$$sudo apt-get update -qq && \
	$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends prometheus >&2
	HOLDFAST_PROMETHEUS=required $(GO) test -race -count=1 -run 'TestPrometheus|TestAlerts' ./examples/observe ./otellock

.PHONY: lint
lint: ## check formatting, vet, staticcheck, tidy go.mod files, the API and the workflows
	@test -z "$$($(TOOL) gofumpt -l .)" || { echo "gofumpt would change:"; $(TOOL) gofumpt -l .; exit 1; }
	env GOWORK=$(GOWORK) $(GO) vet $(PACKAGES)
	staticcheck=$$($(TOOL) -n staticcheck) && env GOWORK=$(GOWORK) "$$staticcheck" $(PACKAGES)
	set -e; for m in $(MODULES); do (cd $$m && GOWORK=off $(GO) mod tidy -diff); done
	cd bench && export GOWORK=off && $(GO) vet ./... && $(TOOL) staticcheck ./... && $(GO) mod tidy -diff
	cd tools && export GOWORK=off && $(GO) vet ./... && $(GO) test ./... && $(GO) mod tidy -diff
	@set -e; for m in $(PUBLISHED); do $(call api,$$m) | diff -u api/$${m/#./holdfast}.txt - \
		|| { echo "the exported API differs from api/: make api, and look at the difference" >&2; exit 1; }; done
	cd faults && $(GO) vet -tags holdfast_simulation ./simulate
	$(TOOL) actionlint

# The version to be released, with its v. Without one, what depends on it is skipped.
VERSION ?=

.PHONY: release-check
release-check: ## check a commit before it gets a version tag: VERSION=v0.1.0, see docs/releasing.md
	@VERSION=$(VERSION) tools/release-check.sh

.PHONY: format
format: ## format all Go code
	$(TOOL) gofumpt -w .

# The exported API of the module in a folder.
api = GOWORK=off $(GO) -C tools run ./api ../$(1)

.PHONY: api
api: ## write the exported API of each published module to api/, after a change of it
	@set -e; for m in $(PUBLISHED); do $(call api,$$m) > api/$${m/#./holdfast}.txt; done

.PHONY: floor
floor: needed ## test with exactly the dependencies of go.mod, as the oldest that users may have
	$(call gotest,off) -p 2 ./core ./core/internal/lockscript ./...

.PHONY: latest
latest: needed ## test with the newest dependencies, and what those need
	@set -e; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; for module in . gocronlock; do \
		cd "$(CURDIR)/$$module"; cp go.mod go.sum "$$dir"; \
		newest=$$(GOWORK=off $(GO) list -m -f '{{if not (or .Main .Indirect .Replace)}}{{.Path}}@latest{{end}}' all); \
		GOWORK=off $(GO) get -modfile="$$dir/go.mod" $$newest; \
		$(call gotest,off) -p 2 -modfile="$$dir/go.mod" ./...; \
	done

.PHONY: bench
bench: needed ## measure beside other lock libraries, for a quarter of an hour: docs/benchmarks.md
	cd bench && GOWORK=off $(GO) run . -page ../docs/benchmarks.md

.PHONY: bench-quick
bench-quick: needed ## the same with few and short rounds, for development: BENCH="-only pairs -who 'Mutex|bare' -cpuprofile cpu.prof"
	cd bench && GOWORK=off $(GO) run . -quick $(BENCH)

.PHONY: bench-server
bench-server: needed ## measure what the commands of locks cost the server, in four minutes: docs/benchmarks.md
	cd bench && GOWORK=off $(GO) run . -server -page ../docs/benchmarks.md

.PHONY: limits-bench
limits-bench: needed ## measure semaphores and elections beside others, also under faults, in four minutes: docs/benchmarks.md
	cd bench && GOWORK=off $(GO) run ./limits -page ../docs/benchmarks.md

.PHONY: scaling
scaling: needed ## measure what locks cost a server, for docs/scaling.md and its calculator, in four minutes
	cd bench && GOWORK=off $(GO) run ./capacity -measure -page ../docs/scaling.md

.PHONY: bench-test
bench-test: needed ## test that what is compared locks, and that the benchmark counts right
	cd bench && GOWORK=off $(GO) test -race -count=1 ./...

.PHONY: bench-core
bench-core: needed ## measure a lock and unlock against the bare script pair, as Go benchmarks
	$(GO) test -run '^$$' -bench . -benchmem -count 5 ./tests/mutex

.PHONY: fairness
fairness: needed ## let 16, 64 and 256 waiters contest for a fair lock, and measure what lines cost the server
	$(GO) test -count=1 -v -run 'TestFairness|TestServerTime' ./tests/fair -contest 5s

.PHONY: dependencies
dependencies: floor latest ## both; they mostly wait, or compile, so run them side by side: make dependencies -j2 -Otarget

.PHONY: model
model: needed ## compare the scripts with a model over 100,000 random operations; make test takes a quarter of them
	$(GO) test -count=1 -v -run 'TestModel$$' ./core/internal/lockscript -model.ops 100000

.PHONY: names
names: needed ## lock and unlock a million names, on one server and in a Cluster, and measure what is left: docs/redis.md
	$(GO) test -count=1 -timeout 30m -v -run TestNamesLeaveNothing ./tests/client -names 1000000

.PHONY: listing
listing: needed ## list 100,000 locks, and measure what that costs the server: docs/operations.md
	$(GO) test -count=1 -v -run TestListOfMany ./tests/inspect -listed 100000

.PHONY: topologies
topologies: needed ## run the conformance suite on all strategies on Sentinel and Cluster; make test takes one on each
	$(GO) test -race -count=1 -timeout 30m -run TestTopologies ./tests/strategies -topologies

.PHONY: rights
rights: needed ## run the conformance suite on all strategies as the Redis user of docs/redis.md; make test takes some
	$(GO) test -race -count=1 -timeout 30m -run TestConformanceOfMinimalUser ./tests/rights -rights

.PHONY: failovers
failovers: needed ## replace a master ten times planned and ten times by SIGKILL, under load, and count what is lost
	$(GO) test -count=1 -v -run 'TestFailoverUnderLoad' ./tests/sentinel -failovers 10

.PHONY: storm
storm: needed ## break pairs and triples of a Redlock's five servers under load for a minute
	$(GO) test -count=1 -v -run TestRedlockStorm ./tests/redlock -storm 60s

.PHONY: outages
outages: needed ## kill, freeze and replace masters of a Cluster and move slots, and measure how long locks cannot be had
	$(GO) test -count=1 -v -timeout 30m -run TestOutages ./tests/sentinel -outages 10

.PHONY: crons
crons: needed ## run jobs on five replicas with shifted clocks while they and Redis are broken, and count ticks
	$(GO) test -count=1 -v -timeout 30m -run TestCron ./cronlock/internal/cronworker -crons 60s

.PHONY: tasks
tasks: needed ## send tasks five times each to servers that are killed and stopped while Redis is broken, and count effects
	$(GO) test -count=1 -v -timeout 30m -run TestStorm ./asynqlock/internal/asynqworker -tasks
	$(GO) test -count=1 -v -timeout 30m -run TestLinesMeasured ./asynqlock -lines

.PHONY: elections
elections: needed ## kill, stop and cut off the leaders of five processes for a minute, and count terms: docs/elections.md
	$(GO) test -count=1 -v -timeout 30m -run TestElectionAmongProcesses ./tests/election -elections 60s

.PHONY: inspector
inspector: needed ## load pages of inspector beside 100,000 locks, and measure what they cost: docs/inspector.md
	$(GO) test -count=1 -v -run TestManyLocks ./inspector -live 100000

.PHONY: screenshots
screenshots: needed ## take the pictures of inspector in docs, where there is a Chromium
	$(GO) test -count=1 -run TestScreenshots ./inspector/internal/browser -screenshots $(CURDIR)/docs

.PHONY: commands
commands: needed ## break commands under locks, their hosts and Redis in 120 rounds, and measure: docs/command.md
	cd cmd/holdfast && $(GO) test -count=1 -v -timeout 30m -run 'TestStorm|TestPaused' . -rounds 10 -storm-ttl 2s
	cd cmd/holdfast && $(GO) test -count=1 -v -timeout 10m -run TestOverhead . -overhead 40

# Versions of Redisson; the first one is that of the tests that take only one.
REDISSON ?= 4.7.0,3.52.0
INTEROP  := ./internal/interop -interop -redisson $(REDISSON)
CONTEST  ?= 60s

.PHONY: interop
interop: needed ## contend with a real Redisson, where java and mvn are: the figures in docs/redisson.md
	$(GO) test -count=1 -v -timeout 30m -parallel 48 $(INTEROP) -contest $(CONTEST)

.PHONY: interop-long
interop-long: needed ## let Go and Java alternate for ten minutes while both renew their locks
	$(GO) test -race -count=1 -v -timeout 30m -run TestWatchdogs $(INTEROP) -watch 10m

.PHONY: interop-bench
interop-bench: needed ## measure locks and semaphores of Redisson beside those of holdfast: the tables in docs/redisson.md
	$(GO) test -count=1 -v -timeout 30m -run 'TestSpeed|TestPermitsUnderFaults' $(INTEROP) -speed 3s

# The seed of the first round or simulation. It chooses the faults; what comes of them differs from run to run.
SEED ?= 1
# Where histories of runs with violations and the tables of results go.
RESULTS ?= $(CURDIR)/faults/results

.PHONY: fault
fault: needed ## break workers, links and servers for a moment, simulate two hours, and find three bugs that are put in
	cd faults && $(GO) test -count=1 -timeout 5m -v -run TestFaults ./round \
		-faults 100s -each 20s -kinds 5 -together -seed $(SEED) -out $(RESULTS)
	cd faults && $(GO) test -count=1 -timeout 5m -v -tags holdfast_simulation ./simulate \
		-seeds 4 -hours 0.5 -seed $(SEED) -out $(RESULTS)
	cd faults && $(GO) test -count=1 -timeout 5m -v ./mutants -kill -most 3

DURATION ?= 1h

.PHONY: fault-long
fault-long: needed ## the same on all topologies, for DURATION=1h: the figures in docs/faults.md
	cd faults && $(GO) test -count=1 -timeout 0 -v -run TestFaults ./round \
		-faults $(DURATION) -each 60s -shim -seed $(SEED) -out $(RESULTS)

SEEDS ?= 60
HOURS ?= 2

.PHONY: simulate
simulate: ## contend for locks under faults in virtual time: 60 seeds of 2 hours
	cd faults && $(GO) test -count=1 -timeout 0 -v -tags holdfast_simulation ./simulate \
		-seeds $(SEEDS) -hours $(HOURS) -seed $(SEED) -out $(RESULTS)

.PHONY: limits
limits: needed ## let 64 callers in 4 processes contend for a semaphore whose n changes, under faults for a minute
	cd faults && $(GO) test -count=1 -timeout 5m -v -run TestFaults ./round \
		-faults 60s -each 60s -only aof -limits -seed $(SEED) -out $(RESULTS)

.PHONY: mutants
mutants: needed ## put known bugs into core, one at a time, and run the test that has to find each
	cd faults && $(GO) test -count=1 -timeout 0 -v ./mutants -kill -baseline

FUZZTIME ?= 60s

.PHONY: fuzz
fuzz: ## search for keys that collide, malformed keys that pass, records that cannot be read and writes of others that break a script, for FUZZTIME=60s each
	$(GO) test -run '^$$' -fuzz FuzzKeys -fuzztime $(FUZZTIME) ./core
	$(GO) test -run '^$$' -fuzz FuzzKeys -fuzztime $(FUZZTIME) ./middleware
	$(GO) test -run '^$$' -fuzz FuzzKeys -fuzztime $(FUZZTIME) ./asynqlock
	$(GO) test -run '^$$' -fuzz FuzzParseIdempotencyKey -fuzztime $(FUZZTIME) ./middleware
	$(GO) test -run '^$$' -fuzz FuzzDecodeResponse -fuzztime $(FUZZTIME) ./middleware
	$(MAKE) fuzz-replies

# What other programs write to Redis, and what servers reply.
.PHONY: fuzz-replies
fuzz-replies: needed
	$(GO) test -run '^$$' -fuzz FuzzReplies -fuzztime $(FUZZTIME) ./core/internal/lockscript
	$(GO) test -run '^$$' -fuzz FuzzCoTenant -fuzztime $(FUZZTIME) ./core/internal/lockscript
	$(GO) test -run '^$$' -fuzz FuzzBegin -fuzztime $(FUZZTIME) ./core/internal/oncescript
	$(GO) test -run '^$$' -fuzz FuzzCoTenant -fuzztime $(FUZZTIME) ./core/internal/oncescript

.PHONY: pictures
pictures: ## draw the diagrams of docs, and the one of the flash sale from a sale with and one without guards
	$(GO) run ./internal/pictures docs
	$(GO) run ./examples/flashsale -picture docs/flashsale.svg

.PHONY: flashsale
flashsale: ## run the flash sale, and the control without locks, which has to break
	$(GO) run -v ./examples/flashsale
	! $(GO) run ./examples/flashsale -unguarded

.PHONY: examples
examples: flashsale ## run all examples
	@set -e; for main in examples/*/main.go; do \
		program=$${main%/main.go}; [ "$$program" = examples/flashsale ] && continue; \
		printf '\n== %s\n' "$$program"; $(GO) run "./$$program"; \
	done
	$(GO) test -v ./examples/testing
