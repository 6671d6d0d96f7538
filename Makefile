# lockbench: `make bench` for a report, `make test` for the tests.

GO      ?= go
BIN     := bin
# How long each fuzz target runs, and flags of make perf beyond its defaults.
FUZZTIME  ?= 10s
PERFFLAGS ?=
# Go keeps its caches below HOME, which a bare CI environment may lack.
ifndef HOME
export HOME := $(shell dir=$$(eval echo "~$$(id -un 2>/dev/null)"); [ -d "$$dir" ] && [ -w "$$dir" ] || dir="$(CURDIR)/.cache/home"; echo "$$dir")
endif
# staticcheck is pinned here; it is not a dependency of lockbench.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
# Everything is compiled the same way, so that no step compiles again what another
# one has compiled.
export GOFLAGS += -trimpath

.PHONY: bench test test-docker images short servers servers-test build release lint fuzz perf prove-heal clean help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

bench: build ## from nothing to a report: install what is missing, run the quick suite
	-@sh tools/servers.sh
	$(BIN)/lockbench run

test: servers-test lint ## everything that CI runs, ending in go test's own output
	$(GO) test -vet=off ./checker ./history
	# Tests with servers mostly wait: for leases to end, and for elections. So more
	# of them run side by side than there are CPUs; and the compiler comes second,
	# as it would keep clients and servers from their work for seconds.
	$(GO) test -vet=off -race -toolexec 'nice -n 19' -timeout 15m -p 3 -parallel 6 ./...

short: ## the tests that need no server and few minutes, and a summary of what they leave out
	@mkdir -p $(BIN); $(GO) test -short -v ./... >$(BIN)/short.log 2>&1; code=$$?; \
	grep -E '^(ok|FAIL|panic:)' $(BIN)/short.log; grep -E -A 30 -- '--- FAIL' $(BIN)/short.log; \
	echo; echo "Left out (make test runs them):"; \
	grep -o 'left out by -short: needs .*' $(BIN)/short.log | sed 's/.*: needs/tests that need/' | sort | uniq -c | sort -rn; \
	exit $$code

images: ## build the images of --env docker and docker-compose.yml, and of lockbench itself
	@sh tools/images.sh

test-docker: images ## every topology and each fault in containers, on a real engine
	LOCKBENCH_TEST_DOCKER=1 $(GO) test -v -count 1 -timeout 15m ./internal/cluster -run 'Container'

servers: ## install the servers that are missing, and nothing else
	@sh tools/servers.sh

servers-test:
	@sh tools/servers.sh race

build: ## build bin/lockbench
	$(GO) build -o $(BIN)/lockbench ./cmd/lockbench

PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
release: ## static binaries for all platforms and their checksums, in bin/release
	@rm -rf $(BIN)/release; mkdir -p $(BIN)/release
	@for p in $(PLATFORMS); do \
		echo "build lockbench-$${p%/*}-$${p#*/}"; \
		CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build -o $(BIN)/release/lockbench-$${p%/*}-$${p#*/} ./cmd/lockbench || exit 1; \
	done
	cd $(BIN)/release && sha256sum lockbench-* >sha256sums

lint: ## gofmt, go vet, staticcheck, plain English, and the types on macOS
	@unformatted=$$(gofmt -l *.go */) || exit 1; if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	# With -race, as the tests are compiled: they need the same packages.
	$(GO) vet -race ./...
	GOBIN=$(CURDIR)/$(BIN) $(GO) install $(STATICCHECK)
	GOFLAGS="$$GOFLAGS -race" $(BIN)/staticcheck ./...
	$(GO) run ./tools/plainenglish
	$(GO) run ./tools/typecheck darwin/arm64

fuzz: ## a short run of every fuzz target; FUZZTIME=1m for longer ones
	@grep -ro --include='*_test.go' '^func Fuzz[A-Za-z0-9]*' . | sed 's|/[^/]*:func | |' | sort -u | while read -r dir target; do \
		echo "$$dir $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$dir" </dev/null || exit 1; \
	done

perf: ## what lockbench itself costs (about twelve minutes); PERFFLAGS='-rounds 25 -window 1s' for more
	$(GO) build -o $(BIN)/perf ./internal/perf
	$(BIN)/perf $(PERFFLAGS)
	@echo; echo "== recording: one call with both its records, as workers write it; then with its value in a histogram"
	$(GO) test -run '^$$' -bench 'RecordedCall' -benchmem -count 3 ./workloads
	$(GO) test -run '^$$' -bench 'Record$$|RecordParallel|Clock' -benchmem -count 3 ./history
	@echo; echo "== the checker's sweep"
	$(GO) test -run '^$$' -bench 'Sweep$$' -benchmem -count 3 ./checker
	$(GO) test -run '^$$' -bench 'AgainstPorcupine$$' -benchtime 1x ./checker

KILLS       ?= 50
KILLFAULTS  ?= holder-pause,holder-kill,step-pause,holder-cut,holder-cut-kill,holder-reply-lost,holder-delay,holder-clock,holder-starve,leader-kill,leader-pause,leader-cut,leader-cut-peers,leader-clock,leader-slow-disk,leader-evict,leader-full,minority-pause,each-restart
KILLRECIPES ?= redis/token,redis/token:replicated,etcd/mutex:quorum,zookeeper/sequence:quorum,memcached/cas,mysql/lease-row:replicated
HEALFLAGS   ?=
prove-heal: build ## kill lockbench during its faults, KILLS times, and look for what it leaves; HEALFLAGS='-kill-suite FILE'
	$(GO) test ./cmd/lockbench -run '^TestKilledRunLeavesNothing$$' -count 1 -v -timeout 60m -kill-program '$(CURDIR)/$(BIN)/lockbench' \
		-kills $(KILLS) -kill-faults '$(KILLFAULTS)' -kill-recipes '$(KILLRECIPES)' -kill-within 2s $(HEALFLAGS)

clean: ## remove what was built; results stay
	rm -rf $(BIN)
