# Two commands are enough: "go run -v ./examples/flashsale" and "make test". The rest is for developers.

SHELL   := bash
GO      ?= go
# Modules of this repository beside the root; each keeps its dependencies to itself.
MODULES := . cmd/holdfast examples gocronlock inspector otellock tests/integration
# Those with a published package, whose tests have targets of their own.
BESIDE  := gocronlock inspector otellock
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
PLAIN := ./tests/architecture ./tests/docs ./core/internal/lockscript ./core/internal/oncescript ./tests/integration/frameworks ./examples/...

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

# tests/architecture lists the packages of these modules, and tests/docs compiles the code that pages show of them. Both
# download nothing themselves, and skip what is missing.
SHOWN := lab/bench cmd/holdfast examples gocronlock inspector otellock tests/integration
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
	$(GO) vet ./... ./cmd/holdfast/... ./examples/... ./gocronlock/... ./inspector/... ./otellock/...
	$(GO) test -run '^Fuzz' ./core ./middleware ./asynqlock
	$(GO) test ./tests/architecture ./tests/docs ./internal/throttle ./examples/...

# For each platform, the published modules and the command. The library has to compile with 32 bits too, and so have its tests.
PLATFORMS := linux/amd64 linux/arm64 darwin/arm64 windows/amd64 freebsd/amd64
.PHONY: platforms
platforms: ## compile the published modules and the command for each platform, and vet the library with 32 bits
	@set -e; export CGO_ENABLED=0 GOWORK=off; for platform in $(PLATFORMS); do for m in $(PUBLISHED) $(COMMAND); do \
		echo "$$platform $$m"; GOOS=$${platform%/*} GOARCH=$${platform#*/} $(GO) -C $$m build ./...; \
	done; done; \
	echo "linux/386 ."; GOOS=linux GOARCH=386 $(GO) vet ./...

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

# tests/integration/fencing skips the SQL for a server that is not installed. It starts servers of its own.
.PHONY: databases
databases: ## install PostgreSQL and MariaDB with apt-get, for the tests of the SQL in docs/fencing.md
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && [ -x /usr/sbin/mariadbd ] && exit 0; \
	sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	echo "installing postgresql and mariadb-server-core with apt-get" >&2; \
	$$sudo apt-get update -qq && \
	$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
		postgresql mariadb-server-core mariadb-client-core >&2

.PHONY: lint
lint: ## check formatting, vet, staticcheck, tidy go.mod files, the API and the workflows
	@test -z "$$($(TOOL) gofumpt -l .)" || { echo "gofumpt would change:"; $(TOOL) gofumpt -l .; exit 1; }
	env GOWORK=$(GOWORK) $(GO) vet $(PACKAGES)
	staticcheck=$$($(TOOL) -n staticcheck) && env GOWORK=$(GOWORK) "$$staticcheck" $(PACKAGES)
	set -e; for m in $(MODULES); do (cd $$m && GOWORK=off $(GO) mod tidy -diff); done
	cd tools && export GOWORK=off && $(GO) vet ./... && $(GO) test ./... && $(GO) mod tidy -diff
	@set -e; for m in $(PUBLISHED); do $(call api,$$m) | diff -u api/$${m/#./holdfast}.txt - \
		|| { echo "the exported API differs from api/: make api, and look at the difference" >&2; exit 1; }; done
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
