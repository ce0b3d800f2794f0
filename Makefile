# The source of truth for building and checking. `make help` lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help

GOLANGCI_LINT_VERSION := v2.15.0
TOOLS := $(CURDIR)/.cache/bin
LINT := $(TOOLS)/golangci-lint
# A count, not a duration: at a deadline the fuzzing coordinator can report its own
# "context deadline exceeded" as a failure without an input (golang/go#75804).
FUZZ_INPUTS ?= 20000
FUZZ_SECONDS ?= 0
# The packages everything else stands on: `quick` runs them under the race detector.
CORE := $(foreach p,$(wildcard pkg/likes pkg/clock pkg/fold pkg/cursor pkg/batch pkg/memory),./$(p)/...)

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-18s %s\n", $$1, $$2}'

.PHONY: build
build: ## build bin/likectl
	go build -trimpath -o bin/likectl ./cmd/likectl

.PHONY: run
run: build ## build and start the service
	bin/likectl serve

.PHONY: quick
quick: format-check ## checks for every commit, at most 3 minutes, no Docker
	go vet ./...
	go build -o /dev/null ./...
	go test -short ./...
	$(if $(CORE),go test -short -race $(CORE))
	@if [ -x $(LINT) ]; then $(LINT) run; else echo "lint not run: make tools installs it"; fi

.PHONY: test
test: ## everything, on a fresh Debian machine (root, Go): tools, images, lint, all tests; nothing is skipped
	testcontainers/test.sh

.PHONY: nightly
nightly: ## test, then the long runs: 200 kills an engine, long random programs, shuffled repetition, fuzzing
	testcontainers/test.sh
	LIKECTL_KILLS=200 go test -count=1 -timeout 2h -v -run 'TestCrash' ./tiers/tiertest
	LIKECTL_OPS=20000 go test -count=1 -timeout 1h -run 'Metamorphic|Concurrent' ./tiers/tier1
	LIKECTL_TEST_ERASE=1000000 go test -count=1 -timeout 1h -v -run 'TestEraseAUser' ./tiers/tier1
	go test -race -count=3 -shuffle=on -p 1 -timeout 3h $$(go list ./... | grep -v /benchmarks/)
	$(MAKE) fuzz FUZZ_INPUTS=50000 FUZZ_SECONDS=60

.PHONY: bench-peers
bench-peers: ## tier 1 beside plain Postgres, Redis and PocketBase, 20 minutes; SHORT=1: 3 minutes, to see that it works
	go run ./benchmarks/peers $(if $(SHORT),,-full)

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZ_INPUTS (20000) inputs at a time, for at least FUZZ_SECONDS (0)
	@grep -rHoE --include='*_test.go' 'func Fuzz\w+' cmd tiers pkg benchmarks | sed 's/func //' | sort -u | \
	while IFS=: read -r file name; do \
		echo "$$name ($${file%/*})"; end=$$((SECONDS + $(FUZZ_SECONDS))); \
		until go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZ_INPUTS)x "./$${file%/*}" || exit 1; [ $$SECONDS -ge $$end ]; do :; done || exit 1; \
	done

.PHONY: lint
lint: tools format-check ## run golangci-lint with .golangci.yml
	$(LINT) run
	@sleeping=$$(grep -lr --include='*_test.go' 'time\.Sleep(' . | xargs -r grep -L '"testing/synctest"'); \
	[ -z "$$sleeping" ] || { echo "a test waits for a condition, and sleeps only in a synctest bubble:"; echo "$$sleeping"; exit 1; }

.PHONY: format
format: tools ## rewrite the code the way `lint` wants it
	$(LINT) fmt

.PHONY: format-check
format-check:
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	[ -z "$$unformatted" ] || { echo "run make format for:"; echo "$$unformatted"; exit 1; }

.PHONY: tools
tools: ## install the pinned tools into .cache/bin where they are missing
	@$(LINT) version 2>/dev/null | grep -q ' $(GOLANGCI_LINT_VERSION:v%=%) ' || \
	GOBIN=$(TOOLS) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

.PHONY: images
images: ## install and start Docker, pull or build the images the tests use
	testcontainers/images/setup.sh

.PHONY: clean-containers
clean-containers: ## remove all containers that tests have left behind
	testcontainers/images/clean.sh 0
