# lockbench: `make bench` for a report, `make test` for the tests.

GO      ?= go
BIN     := bin
# staticcheck is pinned here; it is not a dependency of lockbench.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: bench test servers servers-test build lint fuzz perf clean help

help: ## say what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

bench: build ## from nothing to a report: install what is missing, run the quick suite
	-@sh tools/servers.sh
	$(BIN)/lockbench run

test: servers-test lint ## everything that CI runs, ending in go test's own output
	$(GO) test -race -timeout 15m ./...

servers: ## install the servers that are missing, and nothing else
	@sh tools/servers.sh

servers-test:
	@sh tools/servers.sh race

build: ## build bin/lockbench
	$(GO) build -trimpath -o $(BIN)/lockbench ./cmd/lockbench

lint: ## gofmt, go vet, staticcheck, and a build for macOS
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	GOOS=darwin GOARCH=arm64 $(GO) build ./...

clean: ## remove what was built; results stay
	rm -rf $(BIN)
