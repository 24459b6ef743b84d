package main

import "github.com/holdfast-go/holdfast/lab/mutants"

// The figures of what several proofs print.
const (
	allRounds   = `^ *\| all \| (\d+) \| \S*s \|`
	allFaults   = `^ *\| all \| \d+ \| \S*s \| (\d+) \|`
	allGrants   = `^ *\| all \| \d+ \| \S*s \| \d+ \| (\d+) \|`
	violations  = `^ *\| all \| \d+ \| \S*s \| .* (\d+) \|$`
	staleWrites = `^ *\| all \| \d+ \| \S*s \| \d+ \| \d+ \| \d+ \(\d+\) \| (\d+) \|`
	judged      = `^ *\| all \| \d+ \| (\d+) \| \d+ \| \d+ \| \d+ \|$`
	illegal     = `^ *\| all \| \d+ \| \d+ \| \d+ \| \d+ \| (\d+) \|$`
	unfenced    = `^ *\| baseline: no fence \| \d+ \| \d+ \| \d+ \| \d+ \| (\d+) \|$`
	packages    = `^ok\s.*\d+\.\d+s$` // neither cached nor without tests to run
	testsDone   = `^DONE (\d+) tests`
	passedTests = `^\s*--- PASS: `
)

// proofs are all of them, in the order of the table.
var proofs = []proof{
	{
		name: "ci", alone: true, shows: "what every change has to pass: `.ci/run`", minutes: 20,
		command: ".ci/run",
		figures: []figure{
			atLeast(9_000, "tests", `(\d+) passed, \d+ skipped, 0 failed`), atLeast(1, "seconds of make test", `^== make test: (\d+) s`),
			atLeast(1, "seconds in all", `^== done: (\d+) s`),
		},
	},
	{
		name: "clone", alone: true, shows: "the two commands of the README in a clean clone, with an empty build cache and again", minutes: 15,
		command: `d=$(mktemp -d); trap 'rm -rf "$d"' EXIT; git clone -q . "$d/clone"; cd "$d/clone"; git log -1 --format=%h; export GOCACHE=$d/cache
s=$SECONDS; go run -v ./examples/flashsale; echo "cold: $((SECONDS-s)) s"
s=$SECONDS; go run -v ./examples/flashsale; echo "warm: $((SECONDS-s)) s"
s=$SECONDS; make test; echo "tests: $((SECONDS-s)) s"`,
		figures: []figure{
			atLeast(0, "s flash sale cold", `^cold: (\d+) s`), atLeast(0, "s warm", `^warm: (\d+) s`), atLeast(1, "s make test", `^tests: (\d+) s`),
			atLeast(9_000, "tests", `(\d+) passed, \d+ skipped, 0 failed`),
		},
	},
	{
		name: "release-check", shows: "modules, licences, installation through a proxy: `make release-check` in a clean clone", minutes: 6,
		command: `d=$(mktemp -d); trap 'rm -rf "$d"' EXIT; git clone -q . "$d/clone"; make -C "$d/clone" release-check`,
		figures: []figure{atLeast(9, "checks", `^(\d+) checks passed`), atLeast(0, "skipped", `^\d+ checks passed, none failed, (\d+) skipped`)},
	},
	{
		name: "model", shows: "all scripts of locks against a model, 100,000 calls of each strategy", minutes: 1, parts: numbers(4),
		command: "make -C lab model OPS=350000",
		figures: []figure{
			atLeast(1_000_000, "operations", `(\d+) operations; `),
			atLeast(100_000, "of Mutex", `Mutex:(\d+)`), atLeast(100_000, "Fair", `\[Fair:(\d+)`), atLeast(100_000, "Read", ` Read:(\d+)`),
			atLeast(100_000, "Write", ` Write:(\d+)`), atLeast(100_000, "FairWrite", ` FairWrite:(\d+)`),
			atLeast(100_000, "Semaphore", `Semaphore:(\d+)`),
		},
	},
	{
		name: "proof-model", shows: "the protocol of `WithProof`, all states, and four mutants of it", minutes: 1,
		command: "go test -count=1 -v -run 'TestModel$' ./tests/proof",
		figures: []figure{atLeast(80_000, "states", `(\d+) states, `), atLeast(6, "protocols judged", `^\s+--- PASS: `)},
	},
	{
		name: "faults", shows: "faults on real processes and servers on eight topologies, 1,000 rounds", minutes: 9, parts: numbers(20),
		command: `make -C lab fault-long EACH=10s DURATION=430s FAULTS="-together -kinds 7" SEED=$((1000 + 50*N))
make -C lab fault-long EACH=10s DURATION=70s FAULTS="-only clock" SEED=$((1043 + 50*N))`,
		figures: []figure{
			atLeast(1_000, "rounds", allRounds), atLeast(5_000, "faults", allFaults), atLeast(100_000, "grants", allGrants),
			none("violations", violations), atLeast(1, "stale writes without a fence", staleWrites),
			atLeast(50_000, "operations judged as a mutex", `^ +\| mutex \| \d+ \| (\d+) \| \d+ \| \d+ \| \d+ \|$`),
			atLeast(50_000, "as a fenced mutex", `^ +\| fenced-mutex \| \d+ \| (\d+) \| \d+ \| \d+ \| \d+ \|$`),
			atLeast(50_000, "as a reentrant mutex", `^ +\| reentrant-mutex \| \d+ \| (\d+) \| \d+ \| \d+ \| \d+ \|$`),
			atLeast(50_000, "as a reentrant fenced mutex", `^ +\| reentrant-fenced-mutex \| \d+ \| (\d+) \| \d+ \| \d+ \| \d+ \|$`),
			atLeast(50_000, "as a semaphore", `^ +\| semaphore \| \d+ \| (\d+) \| \d+ \| \d+ \| \d+ \|$`),
			atLeast(500_000, "by all models", judged), none("illegal", illegal), atLeast(1, "illegal of the unfenced side", unfenced),
		},
	},
	{
		name: "simulate", shows: "faults in virtual time, 100 hours", minutes: 4, parts: numbers(9),
		command: "make -C lab simulate SEEDS=6 HOURS=2 SEED=$((6*N - 5))",
		figures: []figure{
			atLeast(100, "hours", `^\| all \| \d+ \| (\d+)h`), atLeast(50, "worlds", allRounds), atLeast(5_000, "faults", allFaults),
			atLeast(50_000, "grants", allGrants), none("violations", violations), atLeast(1, "stale writes without a fence", staleWrites),
			atLeast(100_000, "operations judged by models", judged), none("illegal", illegal),
			atLeast(1, "violations of the baseline", `steps forward, (\d+) violations`),
		},
	},
	{
		name: "mutants", shows: "known bugs, each of which a test has to find", minutes: 6,
		parts:   numbers((len(mutants.All) + 9) / 10),
		command: "make -C lab mutants FROM=$((10*N - 9)) MOST=10",
		figures: []figure{atLeast(int64(len(mutants.All)), "killed", `(\d+) of \d+ mutants killed`)},
	},
	{
		name: "semaphore", shows: "a semaphore whose n changes, under faults", minutes: 2,
		command: "make -C lab limits",
		figures: []figure{
			atLeast(1_000, "grants", allGrants), atLeast(10, "faults", allFaults), none("violations", violations), none("illegal", illegal),
		},
	},
	{
		name: "versions", shows: "all tests of the library on each server", minutes: 10,
		parts:   []string{"redis-6.2", "redis-7.0", "redis-8.0", "redis-8.6", "valkey-8.0", "valkey-8.1", "valkey-9.1"},
		command: "make -C lab versions SERVERS=$PART",
		needs:   "command -v apt-get && command -v dpkg-deb && python3 -m pip --version",
		figures: []figure{atLeast(350, "packages passed", packages)},
	},
	{
		name: "topologies", shows: "the suite of locks with all strategies on Sentinel and Cluster", minutes: 5,
		command: "make -C lab topologies", figures: []figure{atLeast(100, "tests", testsDone)},
	},
	{
		name: "rights", shows: "the same as a user with few rights", minutes: 2,
		command: "make -C lab rights", figures: []figure{atLeast(100, "tests", testsDone)},
	},
	{
		name: "sentinel", shows: "masters replaced ten times planned and ten times by SIGKILL, with and without acknowledgement", minutes: 2,
		command: "make -C lab failovers",
		figures: []figure{
			atLeast(1_000, "grants", `(\d+) grants, \d+ lost, `), atLeast(1, "lost without acknowledgement", `\d+ grants, (\d+) lost, `),
			none("tokens given twice", `lost, \d+ overlaps, (\d+) duplicate tokens`),
		},
	},
	{
		name: "cluster", shows: "masters killed, frozen and replaced, and slots moved, ten times each", minutes: 8,
		command: "make -C lab outages",
		figures: []figure{
			atLeast(1_000, "grants", `(\d+) grants: \d+ overlaps`), none("overlaps", `grants: (\d+) overlaps`),
			none("tokens that did not grow", `(\d+) tokens that did not grow`), none("leases lost", `(\d+) of \d+ leases that were held all along lost`),
		},
	},
	{
		name: "redlock", shows: "pairs and triples of five masters broken", minutes: 3,
		command: "make -C lab storm",
		figures: []figure{
			atLeast(20, "pairs", `(\d+) pairs and \d+ triples of servers broken`), atLeast(2, "triples", `pairs and (\d+) triples of servers broken`),
			atLeast(100, "grants", `(\d+) grants, the longest`),
		},
	},
	{
		name: "elections", shows: "leaders killed, stopped, cut off and resigned in five processes", minutes: 3,
		command: "make -C lab elections", figures: []figure{atLeast(50, "terms", `(\d+) terms in `)},
	},
	{
		name: "interop", shows: "beside Redisson 4.7.0 and 3.52.0, both ways", minutes: 6, needs: "command -v java && command -v mvn",
		command: "make -C lab interop", figures: []figure{atLeast(100, "tests passed", passedTests)},
	},
	{
		name: "interop-long", shows: "renewals of both sides for ten minutes", minutes: 11, needs: "command -v java && command -v mvn",
		command: "make -C lab interop-long",
		figures: []figure{atLeast(200, "holds", `(\d+) holds in`), atLeast(1_000, "renewals", `(\d+) renewals; of a TTL`)},
	},
	{
		name: "calls", shows: "gRPC servers killed at each step of 10,000 calls; without the guard calls charge twice", minutes: 1, parts: numbers(10),
		command: "make -C lab calls", needs: "ls /usr/lib/postgresql/*/bin/initdb",
		figures: []figure{
			atLeast(10_000, "calls", `^ .*: (\d+) faults, \d+ twice, \d+ lost, \d+ for an operator`),
			none("twice", ` (\d+) twice, \d+ lost, \d+ for an operator`), none("lost", ` (\d+) lost, \d+ for an operator`),
			none("for an operator", ` (\d+) for an operator`), atLeast(1, "twice without the guard", ` (\d+) twice, \d+ lost$`),
		},
	},
	{
		name: "payments", shows: "workers killed, stopped and cut off at each step of 10,000 payments with the proof", minutes: 2,
		parts: []string{"guard and proof", "HTTP guard and proof", "asynq guard and proof", "other databases"},
		needs: "ls /usr/lib/postgresql/*/bin/initdb && [ -x /usr/sbin/mariadbd ]", command: `make -C lab payments PAYMENTS="/^${PART// /_}"`,
		figures: []figure{
			atLeast(10_000, "payments", `^ +(\d+) payments: `), none("twice", `payments: (\d+) twice`),
			none("lost", `payments: \d+ twice, (\d+) lost`), none("for an operator", `lost, (\d+) for an operator`),
		},
	},
	{
		name: "payments-baseline", shows: "the same without guard, without proof, and with `HoldFailures`: each has its fault", minutes: 1,
		parts: []string{"no guard", "guard", "guard with HoldFailures"},
		needs: "ls /usr/lib/postgresql/*/bin/initdb", command: `make -C lab payments PAYMENTS="/^${PART// /_}"`,
		figures: []figure{
			atLeast(1_000, "payments", `^ +(\d+) payments: `), atLeast(1, "twice", `payments: (\d+) twice`),
			atLeast(1, "lost", `payments: \d+ twice, (\d+) lost`), atLeast(1, "for an operator", `lost, (\d+) for an operator`),
		},
	},
	{
		name: "messages", shows: "consumers, brokers and Redis broken 200 times each on four brokers, and the same without the guard", minutes: 13,
		parts: []string{"redisstreams", "kafka", "jetstream", "rabbitmq"}, needs: "ls /usr/lib/postgresql/*/bin/initdb && [ -x /usr/lib/rabbitmq/bin/rabbitmq-server ]",
		command: "make -C lab messages BROKER=/$PART",
		figures: []figure{
			atLeast(10_000, "messages", `guarded \| (\d+) messages`), atLeast(6_000, "faults", `guarded \| \d+ messages, (\d+) faults`),
			none("twice", `guarded .* (\d+) twice`), none("lost", `guarded .* (\d+) lost`), none("not parked", `guarded .* (\d+) not parked`),
			atLeast(1, "twice without the guard", `baseline .* (\d+) twice`),
		},
	},
	{
		name: "tasks", shows: "asynq servers killed and stopped, and Redis broken, under 10,000 tasks, five for each order", minutes: 3, parts: numbers(3),
		command: "make -C lab tasks",
		figures: []figure{
			atLeast(10_000, "tasks", `(\d+) orders x 5 tasks`).each(5), none("left", `(\d+) left$`), none("archived", `(\d+) archived, `),
			atLeast(1, "orders whose effect was repeated without the guard", `for (\d+) more than one`),
		},
	},
	{
		name: "crons", shows: "jobs on five replicas with shifted clocks, killed and stopped, and Redis broken", minutes: 8,
		command: "make -C lab crons",
		figures: []figure{atLeast(11, "tests passed", passedTests), atLeast(30, "runners killed", `: (\d+) killed[,;]`)},
	},
	{
		name: "commands", shows: "commands under locks, their hosts and Redis broken in 120 rounds", minutes: 4,
		command: "make -C lab commands",
		figures: []figure{
			atLeast(120, "rounds", `: \| [^|:]+ \| (\d+) \| \d+ \| \d+ \|`), atLeast(300, "runs", `: \| [^|:]+ \| \d+ \| (\d+) \| \d+ \|`),
			atLeast(1, "overlaps of the baseline", `: \| baseline: [^|]+ \| \d+ \| \d+ \| (\d+) \|`),
		},
	},
	{
		name: "suites", shows: "the tests of gin, chi, Echo, fiber, asynq, cron and grpc-go with guards in them, and Connect's conformance",
		minutes: 25, command: "make -C lab suites",
		figures: []figure{
			atLeast(100, "tests passed", `: (\d+) of \d+ pass, without guard`), atLeast(100, "without guards", `pass, without guard (\d+);`),
			atLeast(6, "servers of Connect and gRPC", `^    --- PASS: TestConformance/`),
		},
	},
	{
		name: "dependencies", shows: "the oldest and the newest dependencies", minutes: 10, parts: []string{"floor", "latest"},
		command: "make -C lab $PART", figures: []figure{atLeast(5_000, "tests", testsDone)},
	},
	{
		name: "fuzz", shows: "each fuzz test for an hour", minutes: 61,
		parts: []string{
			"core FuzzKeys", "middleware/nethttp FuzzKeys", "tests/asynq FuzzKeys", "middleware/nethttp FuzzParseKeyField",
			"middleware/nethttp FuzzRoutes", "internal/httprecord FuzzDecode", "middleware/internal/rpc FuzzDecode",
			"core/internal/inventory FuzzParseCursor", "core/internal/script FuzzReplies", "core/internal/script FuzzCoTenant",
			"core/internal/script FuzzBegin", "core/internal/script FuzzOnceCoTenant",
		},
		// All twelve may run at a time, so each has one process that searches, and a clone, because an input that it finds would be a change of
		// the code. That is kept among the logs.
		command: `d=$(mktemp -d); trap 'rm -rf "$d"' EXIT; git clone -q . "$d/clone"; logs=$PWD/lab/proofs/logs; cd "$d/clone"
go test -trimpath -run '^$' -parallel 1 -fuzztime 1h -fuzz "${PART#* }\$" ./${PART% *} || { mkdir -p "$logs/found"; cp -r ${PART% *}/testdata/fuzz/* "$logs/found"; false; }`,
		figures: []figure{atLeast(12, "hours", packages), atLeast(12, "executions", `^fuzz: elapsed: .*, execs: (\d+) .*\nPASS$`)},
	},
	{
		name: "names", shows: "a million names leave nothing in Redis", minutes: 5,
		command: "make -C lab names", figures: []figure{atLeast(1_000_000, "names", `(\d+) names: `)},
	},
	{
		// "make -C lab stress" in four parts, for it takes longer than many machines are free for.
		name: "stress", shows: "the tests of the library 20 times over", minutes: 25, parts: numbers(4),
		command: `make needed; GOWORK=off go tool -modfile=tools/go.mod gotestsum --format pkgname --hide-summary skipped --raw-command -- \
	env GOWORK= go test -json -race -shuffle=on -count=5 -timeout 60m ./...`,
		figures: []figure{atLeast(100_000, "tests", testsDone)},
	},
	{
		name: "lab", shows: "the tests of the laboratory, and of what is measured beside others", minutes: 3, parts: []string{"test", "bench-test"},
		command: "make -C lab $PART", figures: []figure{atLeast(100, "tests", testsDone)},
	},
	{
		name: "platforms", shows: "all modules compile for five platforms, and the library with 32 bits", minutes: 10,
		command: "make -C lab platforms", figures: []figure{atLeast(50, "builds", `^(?:linux|darwin|windows|freebsd)/\w+ `)},
	},
	{
		name: "observe", shows: "metrics, dashboard and alerts with a Prometheus", minutes: 3,
		command: "make -C lab observe-check", figures: []figure{atLeast(2, "packages passed", packages)},
	},
	{
		name: "bench", alone: true, shows: "every row of the table of performance, in one run each", minutes: 18, parts: []string{"bench", "bench-server", "limits-bench"},
		command: "make -C lab $PART", figures: []figure{atLeast(50, "rows of tables", `^\| .* \|$`)},
	},
}
