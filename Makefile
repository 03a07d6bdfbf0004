SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
IMG      ?= messaging-inbox-operator:$(VERSION)
CONTAINER_TOOL ?= docker
KUBECTL  ?= kubectl

tool           = go tool -modfile=$(CURDIR)/hack/tools/go.mod $(1)
CONTROLLER_GEN = $(call tool,controller-gen)
GOLANGCI_LINT  = $(call tool,golangci-lint)
KUSTOMIZE      = $(call tool,kustomize)

VERSION_PACKAGE = github.com/messaginginbox/operator/internal/version
LDFLAGS = -s -w -X $(VERSION_PACKAGE).version=$(VERSION) -X $(VERSION_PACKAGE).revision=$(REVISION)

# Every module of our own code. hack/cluster/* and hack/tools only pin what is built elsewhere.
MODULES = . hack/cluster hack/dashboard-picture hack/promtool test/faults
in_each_module = @set -e; for module in $(MODULES); do (cd $$module && set -x && $(1)); done

TAGS    = integration,e2e,bench

# Packages whose tests run with the race detector, as an extended regular expression.
RACE = /(internal/(database|dbschema|drill|metrics|probe|pruner|tablestats)|controllers)(/|$$)

# The generated files, and how to write them below another directory. The API comes
# first and alone: the controllers may not compile without it.
GENERATED     = api/v1alpha1/zz_generated.deepcopy.go config/crd/bases config/rbac/role.yaml docs/reference
generate_into = $(CONTROLLER_GEN) object crd paths=./api/... \
		output:object:dir=$(1)/api/v1alpha1 output:crd:dir=$(1)/config/crd/bases && \
	$(CONTROLLER_GEN) rbac:roleName=manager paths=./controllers/... output:rbac:dir=$(1)/config/rbac && \
	env -u WATCH_NAMESPACE go run ./hack/reference $(1)/docs/reference

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "} /^## / {printf "\n%s\n", substr($$0, 4)} \
		/^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

## Try and test

.PHONY: demo
demo: ## Show the operator at work on a real cluster and database, from nothing.
	go run ./hack/demo

.PHONY: test
test: ## Run everything: check, fuzz, test-integration, test-alerts and test-e2e.
	@for part in check fuzz test-integration test-alerts test-e2e; do \
		start=$$SECONDS; FUZZTIME=$${FUZZTIME:-10s} $(MAKE) --no-print-directory $$part || exit; \
		echo "--- $$part: $$((SECONDS - start)) s"; \
	done

.PHONY: check
check: fmt-check check-generated vet lint unit coverage ## Run what needs neither database nor cluster.

.PHONY: unit
unit: ## Run the unit tests of every module.
	$(call in_each_module,go test ./...)

.PHONY: coverage
coverage: ## Fail unless the tests cover every statement of the redelivery window.
	@result=$$(go test -cover ./internal/redelivery); echo "$$result"; grep -q '^ok .*coverage: 100.0% ' <<<"$$result"

.PHONY: fuzz
fuzz: ## Fuzz what reads the files of others, each parser for FUZZTIME (60s; make test: 10s).
	@for target in $$(go test -list '^Fuzz' ./internal/messenger | grep '^Fuzz'); do \
		(set -x; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $${FUZZTIME:-60s} -fuzzminimizetime 100x ./internal/messenger) || exit; \
	done

.PHONY: test-integration
test-integration: ## Run the tests against a real PostgreSQL and a real apiserver.
	@assets=$$(cd hack/cluster && go run . binaries --envtest | tail -n 1) && export KUBEBUILDER_ASSETS="$$assets" && \
	packages=$$(go list -tags integration ./...) && set -x && \
	go test -race -tags integration -timeout 15m $$(grep -E '$(RACE)' <<<"$$packages") && \
	go test -tags integration -timeout 15m $$(grep -vE '$(RACE)' <<<"$$packages") && \
	cd test/faults && go test -tags integration -timeout 15m ./...

.PHONY: test-alerts
test-alerts: ## Test the alerts and the dashboard with Prometheus' own promtool and query engine.
	cd hack/promtool && go test -count=1 -tags integration ./... # the cache does not see files outside the module
	node --test hack/dashboard-picture/draw/refusals.test.mjs

.PHONY: test-e2e
test-e2e: ## Run the end-to-end tests on a real node.
	go test -tags e2e -count=1 -parallel 8 -timeout 40m -v ./test/e2e # they wait for ticks, not for a processor

# Random kills per fault and broker; 200 are a soak of about four minutes.
SOAK ?= 10

.PHONY: faults
faults: ## Prove the contract under faults on RabbitMQ, Redis and the Doctrine table; SOAK=200 for longer.
	cd test/faults && go run . --soak $(SOAK)

.PHONY: bench
bench: ## Measure what docs/benchmarks.md reports (about half an hour).
	go test -tags integration -run '^$$' -bench . -benchtime 4x -timeout 60m ./internal/pruner
	go test -tags integration -run '^$$' -bench Probe -benchtime 3x ./internal/probe
	go test -tags bench -run '^$$' -bench 'ToReady' -benchtime 10x -timeout 30m -v ./test/bench
	go test -tags bench -run '^$$' -bench 'TenQuietMinutes' -benchtime 1x -timeout 30m -v ./test/bench

.PHONY: dashboard-picture
dashboard-picture: ## Draw docs/images/dashboard.png from a real cluster and brokers (80 minutes; needs chromium).
	cd hack/dashboard-picture && go run .

## Develop

.PHONY: dependencies
dependencies: ## Install what the tests need (Debian and Ubuntu, as root or with sudo).
	hack/install-dependencies

.PHONY: generate
generate: ## Write the deepcopy code, the CRD and the manager's role from their markers, and docs/reference from the commands.
	$(call generate_into,.)

.PHONY: check-generated
check-generated: ## Fail when a generated file is not current.
	@scratch=$$(mktemp -d) && trap 'rm -rf "$$scratch"' EXIT && $(call generate_into,$$scratch) && \
	for file in $(GENERATED); do \
		diff -ru "$$file" "$$scratch/$$file" || { echo "$$file is not current: run make generate"; exit 1; }; \
	done

.PHONY: fmt
fmt: ## Format the code.
	$(GOLANGCI_LINT) fmt

.PHONY: fmt-check
fmt-check: ## Fail when a file is not formatted.
	$(GOLANGCI_LINT) fmt --diff

.PHONY: vet
vet: ## Run go vet on every module.
	$(call in_each_module,go vet -tags $(TAGS) ./...)

.PHONY: lint
lint: ## Run golangci-lint on every module.
	$(call in_each_module,$(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml ./...)

.PHONY: build
build: ## Build bin/inbox.
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "$(LDFLAGS)" -o bin/inbox .

.PHONY: clean
clean: ## Remove what was built.
	rm -rf bin dist

## Install

.PHONY: image
image: ## Build the container image IMG.
	$(CONTAINER_TOOL) build --build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION) -t $(IMG) .

.PHONY: install-manifest
install-manifest: ## Write dist/install.yaml, which installs the operator with the image IMG.
	@mkdir -p dist
	$(KUSTOMIZE) build config/default | sed 's|image: messaging-inbox-operator:dev$$|image: $(IMG)|' > dist/install.yaml
	@grep -q 'image: $(IMG)$$' dist/install.yaml || { echo "the Deployment in config/manager no longer has the image messaging-inbox-operator:dev"; exit 1; }

.PHONY: install
install: ## Install only the CRD in the current cluster.
	$(KUSTOMIZE) build config/crd | $(KUBECTL) apply --server-side -f -

.PHONY: deploy
deploy: install-manifest ## Install the operator in the current cluster.
	$(KUBECTL) apply --server-side -f dist/install.yaml

.PHONY: uninstall
uninstall: install-manifest ## Remove the operator, its CRD and with it every MessagingInbox; databases stay as they are.
	$(KUBECTL) delete --ignore-not-found -f dist/install.yaml
