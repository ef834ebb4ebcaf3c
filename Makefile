# Targets with a `##` comment appear in `make help`.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
FUZZTIME ?= 10s
FAULTS ?= 4

# The product, what its developers run, and the examples: three modules, joined by go.work.
ALL = ./... ./dev/... ./examples/...

# Pinned by dev/go.mod and dev/tools, so that they build from the module cache.
STATICCHECK ?= $(GO) tool staticcheck
GOVULNCHECK ?= $(GO) tool govulncheck
GREMLINS ?= GOWORK=off $(GO) tool -modfile=dev/tools/gremlins.mod gremlins

# Lint vets the whole tree, and nobody debugs the programs of the tests.
TESTFLAGS = -vet=off -ldflags=-w -parallel $(PARALLEL)

# Tests of a package that run at once: they wait more than they compute.
PARALLEL ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

.PHONY: build
build: ## Build bin/skein
	$(GO) build -o bin/skein ./cmd/skein

# Packages tested at once. Tests wait more than they compute: on two processors make test takes
# 3:42 with three times as many, and 4:01 with twice as many.
TESTJOBS ?= $(shell echo $$((3 * $$(getconf _NPROCESSORS_ONLN))))

# Where the programs of the tests stay, so that only those that have changed are linked; empty: none
# is kept.
TESTPROGRAMS ?= bin/tests

# Tests that other targets run.
ELSEWHERE = .ci/long,.ci/alone

# What make test tests.
PACKAGES ?= $(ALL)

.PHONY: test
test: lint ## Check format, vet, staticcheck, then run every test but those that .ci/long and .ci/alone list
	$(GO) run ./dev/gotest -target test -without $(ELSEWHERE) -programs "$(TESTPROGRAMS)" -- $(TESTFLAGS) -p $(TESTJOBS) -timeout 15m $(PACKAGES)

.PHONY: test-long
test-long: ## Run the tests that .ci/long lists: chaos, a few faults, kills, soak, simulation, memory
	$(GO) run ./dev/gotest -target test-long -only .ci/long -- $(TESTFLAGS) -timeout 30m

.PHONY: test-alone
test-alone: ## Run the tests that .ci/alone lists, which compare times or flood: run nothing else beside them
	$(GO) run ./dev/gotest -target test-alone -only .ci/alone -- $(TESTFLAGS) -p 1 -timeout 30m

.PHONY: test-clients
test-clients: ## Run released clients of the protocols over HTTP against a server, and examples/next in a Chromium (needs Node and npm; installs Debian's tools to package Python, where they are missing)
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! /usr/bin/python3 -c 'import build, mypy, setuptools, wheel' 2>/dev/null; then apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends python3 python3-build python3-setuptools python3-wheel python3-venv mypy; fi
	SKEIN_CLIENTS=1 $(GO) run ./dev/gotest -target test-clients -- $(TESTFLAGS) -timeout 30m ./dev/clients

.PHONY: test-console
test-console: ## Drive the console in a real Chromium (installs Debian's chromium-headless-shell, where it is missing; SKEIN_CONSOLE_SHOTS=FOLDER keeps pictures)
	command -v chromium-headless-shell >/dev/null || { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends chromium-headless-shell; } || command -v chromium
	SKEIN_CONSOLE=1 $(GO) run ./dev/gotest -target test-console -- $(TESTFLAGS) -run '^TestBrowser' -timeout 30m ./dev/console

.PHONY: test-release
test-release: ## Build a release for this machine, and install and run it: go install, packages, signature, image, stores of earlier releases (needs root and Debian's dpkg; installs its rpm and gpg, where they are missing)
	if ! command -v rpm >/dev/null || ! command -v gpg >/dev/null; then apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends rpm gnupg; fi
	SKEIN_RELEASE=1 $(GO) run ./dev/gotest -target test-release -- $(TESTFLAGS) -timeout 30m ./dev/release

# SITE is where the site is made; what there is to publish is in its folder dist.
SITE ?= bin/site

.PHONY: site
site: ## Build the documentation's site into bin/site/dist, with VitePress (needs Node and npm)
	$(GO) run ./dev/site $(SITE)
	cd $(SITE) && npm ci --ignore-scripts --no-audit --no-fund --prefer-offline && npm run build

.PHONY: pictures
pictures: ## Make the pictures of the console again (needs Chromium)
	mkdir -p docs/images
	SKEIN_CONSOLE=1 SKEIN_PICTURES=$(CURDIR)/docs/images $(GO) test -count 1 -run TestBrowser_Pictures ./dev/console

# Packages whose code begins no goroutine and holds no lock (dev/house holds them to it): what runs
# at once in their tests is the code of others, which the race detector watches in those' tests.
ALONE = api/(a2a|agui|chat|completions)|commands/thread|connect|console/(chart|markdown)|events(/openresponses)?|internal/(attachment|change|compact|eventtext|excerpt|jsonplan|lru|openaichat|pattern|sse)|operator/blocks|dev/capacity|projections/documents|runtime/(egress|model(/(messages|responses))?|telemetry|transcript)|runview|schema|threads/threadtools

# Packages tested at once under the race detector, and tests of each: they compute more than they
# wait, and beside more than this they wait for one another until clients give up.
RACEJOBS ?= $(shell getconf _NPROCESSORS_ONLN)

# Packages whose tests run without the race detector alone: those that read the source tree have no
# goroutines to watch, cmd/skein and dev/examples run programs that are built without it, and nobody
# runs dev/bench, dev/clients and dev/console but to measure, and to drive clients and browsers.
UNRACED = (cmd/skein|dev/(bench|clients|console|examples|generate|gotest|house|mutate)|$(ALONE))$$
RACEDPACKAGES = $$($(GO) list -f '{{.Dir}}' $(ALL) | grep -vE '/$(UNRACED)')
UNRACEDPACKAGES = $$($(GO) list -f '{{.Dir}}' $(ALL) | grep -E '/$(UNRACED)')
RACE = $(TESTFLAGS) -race -p $(RACEJOBS) -timeout 30m $(RACEDPACKAGES)

.PHONY: test-race
test-race: PARALLEL = $(RACEJOBS)
test-race: ## Run what make test runs under the race detector, but for tests that measure memory, time or repeatability, move much one after the other, read the source tree, run a program, or are of a package that begins no goroutine (needs a C compiler)
	GORACE=atexit_sleep_ms=0 $(GO) run ./dev/gotest -target test-race -without $(ELSEWHERE),.ci/unraced -- $(RACE)

.PHONY: test-unraced
test-unraced: ## Run the tests that .ci/unraced lists: those that make test-race leaves out of the packages that it tests
	$(GO) run ./dev/gotest -target test-unraced -only .ci/unraced -- $(TESTFLAGS) -p $(TESTJOBS) -timeout 15m

.PHONY: test-race-long
test-race-long: ## Run the tests that .ci/long lists under the race detector
	$(GO) run ./dev/gotest -target test-race-long -only .ci/long -- -race $(TESTFLAGS) -timeout 60m

.PHONY: test-faults
test-faults: ## Break a cluster of processes for about 6 minutes (FAULTS=4 rounds a test; ended after 15 minutes), and hold the log to what clients were told
	SKEIN_FAULTS=$(FAULTS) $(GO) test -count=1 -timeout 15m -v ./dev/faults

.PHONY: mutate-hand
mutate-hand: ## Make deliberate mistakes in the packages that need a server, one at a time (MUTANTS=REGEXP; MUTATE_JOBS=1), and see that a test notices each
	$(GO) run ./dev/mutate -only '$(MUTANTS)' -jobs $(or $(MUTATE_JOBS),1)

.PHONY: test-audit
test-audit: ## Verify a store alongside archiving, purges and imports, and after each of 20 kills under load (AUDIT_ROUNDS=200 threads a writer, AUDIT_KILLS=20)
	AUDIT_ROUNDS=$(or $(AUDIT_ROUNDS),200) $(GO) test -count=1 -timeout 30m -run 'TestVerify_Alongside' ./audit
	AUDIT_KILLS=$(or $(AUDIT_KILLS),20) $(GO) test -count=1 -timeout 30m -v -run 'TestAudit_NoFalseAlarmAfterKills' ./cmd/skein

# Both hold what they have read until they end: collecting garbage less often saves a
# fourth of their processor time, and takes some 300 MB more.
.PHONY: lint
lint: ## Check format, vet, staticcheck, and that each module names what it imports
	@echo 'gofmt -l .'
	@unformatted="$$(gofmt -l .)"; \
	if [ -n "$$unformatted" ]; then \
		printf 'not formatted (run make fmt):\n%s\n' "$$unformatted" >&2; exit 1; \
	fi
	GOGC=400 $(GO) vet $(ALL)
	GOGC=400 $(STATICCHECK) $(ALL)
	for module in . dev examples; do GOWORK=off $(GO) -C $$module list -test -deps ./... >/dev/null; done # each names what it imports

.PHONY: fmt
fmt: ## Format every Go file
	gofmt -w .

.PHONY: generate
generate: ## Write the files derived from the event catalog
	$(GO) run ./dev/generate

.PHONY: verify
verify: ## Fail when a derived file is stale or a change of the contract has no version
	$(GO) run ./dev/generate -check

.PHONY: size
size: ## Count lines, packages, dependencies and words, and list the longest functions
	$(GO) run ./dev/size

.PHONY: demo
demo: ## Run the sample conversations in one process and a temporary folder
	$(GO) run ./cmd/skein demo

.PHONY: cluster
cluster: ## Run three nats-servers and two Skeins on loopback, until Ctrl-C
	$(GO) build -o bin/cluster ./dev/cluster/up
	exec bin/cluster

.PHONY: bench
bench: ## Measure appends to the log, and turns of agents
	$(GO) run ./dev/cmd/skein-bench append
	$(GO) run ./dev/cmd/skein-bench react

MEASUREFLAGS ?=

.PHONY: bench-cluster
bench-cluster: ## Measure commits on three nats-servers of this machine, with one Skein and with two, and with the leader killed
	$(GO) build -o bin/measure ./dev/cluster/measure
	bin/measure $(MEASUREFLAGS)

SOAK ?= 10m

.PHONY: soak
soak: ## Run a steady load for SOAK (10m), and fail if memory, goroutines, file handles or lag grow
	SOAK=$(SOAK) $(GO) test ./dev/soak -run '^TestSoak$$' -count=1 -timeout 0 -v

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (10s)
	@targets="$$($(GO) test -list '^Fuzz' $(ALL) | awk '/^Fuzz/ {names[++n] = $$1} /^ok/ {for (i = 1; i <= n; i++) print $$2, names[i]; n = 0}')"; \
	if [ -z "$$targets" ]; then echo 'no fuzz targets'; exit 0; fi; \
	while read -r package target; do \
		echo "$$package $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x "$$package"; \
	done <<< "$$targets"

.PHONY: mutate
mutate: mutate-pure mutate-hand ## Make mistakes in the code, one at a time, and count those that the tests notice (some hours)

PKG ?= events schema commands/thread projections/documents
WORKERS ?= 1

# A mutant is killed by the tests of its own package, in their short form. One that does not
# end is stopped after the time of five runs, or 4 GB.
.PHONY: mutate-pure
mutate-pure: ## The same in the packages that need no server (PKG='schema events': only these)
	@ulimit -v 4194304 2>/dev/null || true; \
	for package in $(PKG); do \
		echo "$$package"; \
		GOFLAGS='-count=1 -p=$(WORKERS) -short -vet=off' $(GREMLINS) unleash --workers $(WORKERS) --timeout-coefficient 5 -S lct "./$$package" | \
			sed -n -e '/^ *\(LIVED\|NOT COVERED\|TIMED OUT\) /p' -e '/^Killed:/p' -e 's/^Test efficacy:/Killed of covered:/p' -e 's/^Mutator coverage:/Covered of all:/p'; \
	done

VULNDB ?= https://vuln.go.dev

# Not a part of make test: it reads the database at VULNDB, over the network.
.PHONY: vuln
vuln: ## Check the code and its modules against the vulnerabilities that VULNDB knows
	$(GOVULNCHECK) -db $(VULNDB) $(ALL)

GORELEASER ?= github.com/goreleaser/goreleaser/v2@v2.15.1

# Without keys nothing is signed.
.PHONY: release-snapshot
release-snapshot: ## Build all that a release has into dist, and publish nothing (RELEASING.md)
	GOWORK=off $(GO) run $(GORELEASER) release --snapshot --clean $(if $(SKEIN_SIGNING_KEY),,--skip=sign)
	$(GO) run ./dev/release image "$$(sed -n 's/.*"version":"\([^"]*\)".*/\1/p' dist/metadata.json)" dist/skein-image.tar amd64=$$(ls -d dist/skein_linux_amd64*)/skein arm64=$$(ls -d dist/skein_linux_arm64*)/skein

.PHONY: clean
clean: ## Remove what the build made (never data)
	rm -rf bin dist coverage.*
