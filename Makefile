# What a person or CI does with this repository. `make help` lists it.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

GO       ?= go
# Equal source gives equal binaries: no paths, no VCS state, no build id, no cgo.
# lambda.norpc leaves out the protocol of a runtime that is gone. Vet and lint use
# the same flags, so that what one compiles the others find in Go's cache.
export CGO_ENABLED := 0
FLAGS    := -trimpath -buildvcs=false -tags=lambda.norpc
GOBUILD  := $(GO) build $(FLAGS) -ldflags='-s -w -buildid='
LAMBDAS  := $(filter-out webhook,$(notdir $(patsubst %/,%,$(dir $(wildcard functions/*/main.go)))))
COMMANDS := $(dir $(wildcard cmd/elbridge/main.go functions/webhook/main.go local/main.go))

# The race detector needs a C compiler; without one the tests run without it.
CC      := $(firstword $(shell $(GO) env CC))
RACE    := $(if $(shell command -v $(CC) 2>/dev/null),-race)
TESTARG ?=

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: run
run: build-local ## Start the whole system on loopback, show what happens, until Ctrl-C
	@bin/local run $(ARGS)

.PHONY: up
up: build-local ## Start the whole system in the background
	@bin/local up $(ARGS)

.PHONY: down
down: build-local ## Stop what `make up` started
	@bin/local down $(ARGS)

.PHONY: smoke
smoke: build-local ## Walk pods through their lives, by events, by resync and by both, and check the target group after each step
	@bin/local smoke $(ARGS)

.PHONY: test
test: ## Test everything: vet, all packages with the race detector, the smoke script
	$(if $(RACE),,@echo "no C compiler ($(CC)): testing without the race detector")
	$(GO) vet $(FLAGS) ./...
	CGO_ENABLED=$(if $(RACE),1,0) $(GO) test $(RACE) -timeout=25m $(TESTARG) ./...
	$(MAKE) smoke

.PHONY: test-fast
test-fast: ## Test what needs no stack, in under a minute once compiled
	$(GO) test $(FLAGS) -short $(TESTARG) ./...

.PHONY: nightly
nightly: ## Try 100,000 random histories of registrar and resync (about an hour); print seeds and how far it is
	ELBRIDGE_HISTORIES=100000 $(GO) test $(FLAGS) -run TestHistories -count=1 -timeout=6h -v $(TESTARG) ./pkg/internal/histories

.PHONY: lint
lint: ## Look for bugs and for imports in the wrong direction
	GOFLAGS='$(FLAGS)' "$$($(GO) run $(FLAGS) ./local/functions/tool golangci-lint)" run ./...

.PHONY: vuln
vuln: ## Look for known vulnerabilities in what is compiled in (asks vuln.go.dev)
	GOFLAGS='$(FLAGS)' "$$($(GO) run $(FLAGS) ./local/functions/tool govulncheck)" ./...

.PHONY: bench
bench: build-local bin/empty/bootstrap ## Measure; print a table and write bench/results/*.json
	@bin/local bench $(ARGS)

bin/empty/bootstrap: local/bench/empty/main.go
	@$(GOBUILD) -o $@ ./local/bench/empty

.PHONY: build
build: build-local build-deploy ## Build all binaries: for this machine in bin/, for Lambda (arm64) in bin/arm64/

.PHONY: build-local
build-local:
	@for name in $(LAMBDAS); do \
		$(GOBUILD) -o bin/$$name/bootstrap ./functions/$$name || exit; \
	done
	@for dir in $(COMMANDS); do \
		$(GOBUILD) -o bin/$$(basename $$dir) ./$$dir || exit; \
	done

.PHONY: build-deploy
build-deploy:
	@for name in $(LAMBDAS); do \
		GOOS=linux GOARCH=arm64 $(GOBUILD) -o bin/arm64/$$name/bootstrap ./functions/$$name || exit; \
	done
	@for name in $(if $(wildcard functions/webhook/main.go),webhook); do \
		GOOS=linux GOARCH=arm64 $(GOBUILD) -o bin/arm64/$$name ./functions/$$name || exit; \
	done

.PHONY: clean
clean: ## Remove what was built here (built tools stay in the user's cache directory)
	rm -rf bin cdk.out
