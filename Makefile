# Two commands are enough: "go run -v ./examples/flashsale" and "make test". The rest is for developers. Experiments and
# long proofs have a Makefile of their own: make -C lab help.

SHELL := bash
GO    ?= go
# Programs with the race detector otherwise sleep for a second before they exit, and the tests run hundreds of them.
export GORACE ?= atexit_sleep_ms=0
TOOL  := GOWORK=off $(GO) tool -modfile=$(CURDIR)/tools/go.mod
# The modules with an API, which api/ lists.
PUBLISHED := . gocronlock inspector middleware/connect middleware/echo middleware/echo4 middleware/fiber middleware/grpc msglock/watermill otellock
# All modules that are tested with the library. Those of lab are tested by their own Makefile.
MODULES := $(PUBLISHED) middleware/internal/rpc cmd/holdfast examples examples/messages tests/integration tests/sql
# Tests with a newer Go than the others, which are not in go.work.
APART := tests/messages

# The one module that lint checks, such as middleware/grpc; all if empty.
MODULE ?=
ifneq ($(MODULE),)
only = $(filter $(patsubst ./%,%,$(patsubst %/,%,$(MODULE))),$(1))
ALL_MODULES := $(MODULES)
PUBLISHED := $(call only,$(PUBLISHED))
MODULES := $(call only,$(MODULES))
$(if $(MODULES),,$(error no module $(MODULE); there are $(ALL_MODULES)))
APART :=
endif

.DEFAULT_GOAL := help
.PHONY: $(shell sed -nE 's/^([a-z-]+):.*/\1/p' $(firstword $(MAKEFILE_LIST)))

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/:.*## /\t/' | expand -t 15

# What is tested without the race detector: pages, Lua scripts against their models, suites and topologies, arrival order, other
# frameworks, and examples. Their goroutines are those of packages whose own tests have it.
PLAIN := ./tests/architecture ./tests/docs ./core/internal/script ./tests/rights \
	./tests/strategies ./tests/inspect ./tests/nethttp ./tests/fair ./tests/cluster ./tests/sentinel ./tests/testkit/fastpath \
	./tests/testkit/markdown ./internal/jsonfield ./internal/svg ./tests/integration/... ./tests/sql/... ./examples/...
# Those that take longest come first, so that none of them runs alone at the end.
LONGEST := ./tests/gin ./tests/asynq ./cronlock
LONGEST_PLAIN := ./core/internal/script ./tests/strategies ./tests/rights ./tests/sql ./tests/nethttp \
	./tests/integration/frameworks ./tests/integration/browser ./tests/cluster ./examples/flashsale
# go test, which lists at its end once more what failed; the argument is GOWORK.
gotest = $(TOOL) gotestsum --format pkgname --format-hide-empty-pkg --hide-summary skipped --raw-command -- \
	env GOWORK=$(1) $(GO) test -json -shuffle=on -vet=off

# "make lint" vets. Programs without data for debuggers (-w) take a third less time to link.
test: needed downloads ## run all tests of the library on real Redis servers, most with the race detector
	@events=$$(mktemp); export GOWORK=$(GOWORK); \
	while sleep 10; do echo "  $$(grep -cE '"Action":"(pass|skip)".*"Test"' "$$events") tests so far"; done & \
	trap "kill $$!; rm -f $$events" EXIT; \
	plain=$$($(GO) list $(PLAIN)) || exit; \
	raced=$$($(GO) list ./... | grep -vxF "$$plain") || exit; \
	$(TOOL) gotestsum --jsonfile "$$events" --format pkgname --format-hide-empty-pkg --hide-summary skipped --raw-command -- \
		env GOWORK=$(GOWORK) bash -c '$(GO) test -json -race -shuffle=on -vet=off -ldflags=-w -p 4 -timeout 20m $(LONGEST) $$1; \
			$(GO) test -json -shuffle=on -vet=off -ldflags=-w -p 4 $(LONGEST_PLAIN) $$2' tests "$$raced" "$$plain"; \
	GOWORK=off $(GO) -C tools run ./verdict "$$events"

# Two modules at a time, the longest first, because they mostly wait.
modules: needed ## run the tests of the modules beside the library and of the command, with exactly their dependencies
	@printf '%s\n' $(APART) cmd/holdfast middleware/internal/rpc $(filter-out .,$(PUBLISHED)) | xargs -P 2 -I{} bash -c \
		'printed=$$(cd {} && $(call gotest,off) -race ./... 2>&1); status=$$?; printf "%s\n" "$$printed"; exit $$status'

# tests/architecture lists the packages of these modules, and tests/docs compiles the code that pages show of them. Both
# download nothing themselves, and skip what is missing.
downloads:
	@for m in $(MODULES) lab/bench; do GOWORK=off $(GO) -C $$m list -deps -test ./... >/dev/null || true; done

# The race detector needs a C compiler, the tests need a Redis server. Nothing else is installed, and nothing if
# both are there.
needed:
	@command -v "$${HOLDFAST_REDIS_SERVER:-redis-server}" >/dev/null && command -v "$${CC:-gcc}" >/dev/null && exit 0; \
	if ! command -v apt-get >/dev/null; then \
		echo "The tests need redis-server (6.2 or newer) and a C compiler in PATH. Install them first," >&2; \
		echo "for instance: brew install redis, or dnf install redis gcc. To use another server program," >&2; \
		echo "set HOLDFAST_REDIS_SERVER to its path." >&2; exit 1; \
	fi; \
	$(call install,redis-server gcc libc6-dev)

databases: ## install PostgreSQL and MariaDB with apt-get; without them the tests of the SQL in the docs are skipped
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && [ -x /usr/sbin/mariadbd ] && exit 0; \
	$(call install,postgresql mariadb-server-core mariadb-client-core)

# Install packages of Debian.
install = sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; echo "installing $(1) with apt-get" >&2; \
	$$sudo apt-get update -qq >&2 && \
	$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(1) >&2

PACKAGES := $(MODULES:%=./%/...)
lint: ## check formatting, vet, staticcheck, tidy go.mod files, the API and the workflows
	@test -z "$$($(TOOL) gofumpt -l .)" || { echo "gofumpt would change:"; $(TOOL) gofumpt -l .; exit 1; }
	env GOWORK=$(GOWORK) $(GO) vet $(PACKAGES)
	staticcheck=$$($(TOOL) -n staticcheck) && env GOWORK=$(GOWORK) "$$staticcheck" $(PACKAGES)
	set -e; for m in $(MODULES) $(APART); do (cd $$m && GOWORK=off $(GO) mod tidy -diff); done
	set -e; for m in $(APART); do GOWORK=off $(GO) -C $$m vet ./...; done
	cd tools && export GOWORK=off && $(GO) vet ./... && $(GO) test ./... && $(GO) mod tidy -diff
	@set -e; for m in $(PUBLISHED); do $(call api,$$m) | diff -u api/$${m/#./holdfast}.txt - \
		|| { echo "the exported API differs from api/: make api, and look at the difference" >&2; exit 1; }; done
	$(TOOL) actionlint

fmt: ## format all Go code
	$(TOOL) gofumpt -w .

# The exported API of the module in a folder.
api = GOWORK=off $(GO) -C tools run ./api ../$(1)
api: ## write the exported API of each published module to api/, after a change of it
	@set -e; for m in $(PUBLISHED); do $(call api,$$m) > api/new || { rm api/new; exit 1; }; mv api/new api/$${m/#./holdfast}.txt; done

flashsale: ## run the flash sale, and the baseline without locks, which has to break
	$(GO) run -v ./examples/flashsale
	! $(GO) run ./examples/flashsale -unguarded

examples: flashsale ## run all examples
	@set -e; for main in examples/*/main.go; do \
		program=$${main%/main.go}; [ "$$program" = examples/flashsale ] && continue; \
		printf '\n== %s\n' "$$program"; $(GO) run "./$$program"; \
	done
	$(GO) test -v ./examples/testing

bench: needed ## measure locks beside the bare scripts, as Go benchmarks; beside other libraries: make -C lab bench
	$(GO) test -run '^$$' -bench . -benchmem ./tests/mutex

sizes: ## print how large the house is: files of core, exported names, lines and words
	@tools/sizes.sh

# The version to be released, with its v. Without one, what depends on it is skipped.
VERSION ?=
release-check: needed ## check a commit before it gets a version tag: VERSION=v0.1.0, see docs/releasing.md
	@VERSION=$(VERSION) tools/release-check.sh
