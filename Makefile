# Everything a contributor runs. `make help` lists it; each target installs what it needs or says which command does.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

# The toolchain the release is built with; Go 1.24 and newer fetch it by themselves.
export GOTOOLCHAIN := go1.27.3
# Without the folder's name in them, what was compiled in one checkout serves the next.
export GOFLAGS += -trimpath

# The tools live in a module of their own, so that their two hundred dependencies are none of the server's.
tool = CGO_ENABLED=0 go tool -modfile=tools.mod $(1)
version = go list -modfile=tools.mod -m -f '{{.Version}}' $(1)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: node_modules/.run ## start everything: PostgreSQL, the server and the sandbox organization
	@scripts/need go
	@go build -o bin/countersign ./cmd/countersign
	@go build -o bin/foreground ./scripts/foreground
	@COUNTERSIGN_DEMO=1 exec bin/foreground bin/countersign serve

.PHONY: build
build: ## the two programs of a release: bin/countersign, and bin/countersign-agent for the agent's image
	@scripts/need go
	@go build -o bin/countersign ./cmd/countersign
	@CGO_ENABLED=0 go build -o bin/countersign-agent ./cmd/countersign-agent

.PHONY: dev
dev: node_modules/.run ## the same, rebuilt and reloaded whenever a view or a Go file changes
	@scripts/need go
	@go build -o bin/foreground ./scripts/foreground
	@COUNTERSIGN_DEMO=1 exec bin/foreground env CGO_ENABLED=0 go tool -modfile=tools.mod templ generate --watch \
		--cmd="go run ./cmd/countersign serve"

.PHONY: generate
generate: ## make the generated code anew: views from templ, rows from SQL
	@scripts/need go
	@$(call tool,templ) generate -log-level warn
	@$(call tool,sqlc) generate

.PHONY: lint
lint: ## formatting, go vet, staticcheck
	@scripts/need go git
	@unformatted=$$(git ls-files -z --cached --others --exclude-standard -- '*.go' ':!*_templ.go' ':!db/rows' \
		| xargs -0 env CGO_ENABLED=0 go tool -modfile=tools.mod gofumpt -l) || exit 1; \
	if [ -n "$$unformatted" ]; then printf 'Not formatted; run `go tool -modfile=tools.mod gofumpt -w` on:\n%s\n' "$$unformatted" >&2; exit 1; fi
	@go vet ./...
	@$(call tool,staticcheck) ./...

.PHONY: drift
drift: ## is the generated code what its sources say?
	@scripts/need go git
	@scripts/drift

.PHONY: verify
verify: drift lint vulnerabilities ## everything short of the tests

# The vulnerability list comes as a Go module, pinned like any other: no network at check time, and the same answer everywhere.
.PHONY: vulnerabilities
vulnerabilities: ## does our code reach a known vulnerability?
	@scripts/need go
	@v=$$($(call version,golang.org/x/vulndb)); db=$$PWD/.cache/vulndb/$$v; \
	if [ ! -e "$$db/index/db.json" ]; then \
		rm -rf .cache/vulndb && mkdir -p .cache/vulndb && go mod download -modfile=tools.mod golang.org/x/vulndb && \
		$(call tool,indexdb) -out "$$db.new" -vulns "$$(go list -modfile=tools.mod -m -f '{{.Dir}}' golang.org/x/vulndb)/data/osv" && \
		mv "$$db.new" "$$db"; \
	fi; \
	$(call tool,govulncheck) -db "file://$$db" ./...

# Lint and the fuzz targets have their turn beside the tests, which mostly wait for databases and browsers. Lint vets, so the tests do not.
# The packages that take longest begin first: the last to begin would otherwise run alone, on a machine with nothing else to do.
.PHONY: test
test: needs drift ## everything the machine can check: drift, lint, every test, 20 s of each fuzz target; ends with the Go summary
	@scripts/beside 'make lint; FUZZTIME=20s scripts/fuzz' scripts/with-tests go test -p 3 -vet=off -timeout 30m \
		./web/e2e ./cmd/gallery ./db/... ./internal/proof ./web/... ./...

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME, 5m unless told; what it finds becomes a file in testdata/fuzz, to be committed
	@scripts/need go git
	@scripts/fuzz

# The parser of pushes against real git; make test runs it too, for 20 s like every fuzz target.
.PHONY: fuzz-git
fuzz-git: ## the parser of pushes against real git, for FUZZTIME, 5m unless told
	@scripts/need go git
	@go test ./internal/gitgateway -run '^$$' -fuzz '^FuzzReadPush$$' -fuzztime "$${FUZZTIME:-5m}" -parallel 1

# A seed plays the same operations and the same accidents again: make soak SEED=… ; the time goes to both in turn.
SOAK ?= 10m
SEED ?= 0
.PHONY: soak
soak: node_modules/.run ## the lifecycle under random operations and real crashes, SOAK=10m each; SEED=… plays one again
	@scripts/need go git node
	@go test -count=1 -timeout 0 -v ./internal/proof -run 'TestRandomOperations|TestCrashes|TestAPausedServer' -args -seed=$(SEED) -time=$(SOAK) -crash=$(SOAK)

.PHONY: test-e2e
test-e2e: needs ## the browser and outside-in tests only
	@scripts/with-tests go test -timeout 30m ./web/e2e/...

.PHONY: bench
bench: node_modules/.run ## measure against a direct call and a bare proxy in one run; writes bench/REPORT.md, ends with the gates
	@scripts/need go
	@go build -o bin/countersign ./cmd/countersign
	@go build -o bin/bench ./bench
	@bin/bench -binary bin/countersign -report bench/REPORT.md

.PHONY: gallery
gallery: node_modules/.test ## every view in every state, as files in gallery-out; and the README's pictures
	@scripts/need go node chromium
	@go run ./cmd/gallery -out gallery-out -pictures docs/pictures

# What the tests need beyond Go: Chromium, and what the examples of the documentation use, from the distribution; the rest from npm.
.PHONY: needs
needs: node_modules/.test
	@scripts/need go node git make curl jq chromium

# A stamp holds the lock file it was installed from; `make test` installs a superset of what `make run` needs.
node_modules/.run: package-lock.json
	@scripts/need node
	@if [ -e node_modules/.test ] && cmp -s package-lock.json node_modules/.test; then :; else npm ci --omit=dev --no-progress --loglevel=error; fi
	@cp package-lock.json $@

node_modules/.test: package-lock.json
	@scripts/need node
	@npm ci --no-progress --loglevel=error
	@cp package-lock.json $@
