# make          what there is to make
# make demo     sets itself up, starts everything on this machine, sends real results, prints the addresses
# make test     sets itself up and runs every test

SHELL := /bin/bash
.DEFAULT_GOAL := help
export UV_PYTHON_DOWNLOADS := never
export SAM_CLI_TELEMETRY := 0

PYTHON ?= python3
BIN := .venv/bin
UV = $(or $(wildcard $(BIN)/uv),$(shell command -v uv))
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo -n)

# An environment is up to date when the stamp of its lock is there: a changed lock has another name.
lock-of = $(shell sha256sum requirements/$(1).txt | cut -c1-16)
DEV := .venv/.locked-$(call lock-of,dev)
EMULATOR := .venvs/emulator/.locked-$(call lock-of,emulator)
SAM := .venvs/sam/.locked-$(call lock-of,sam)
BENCH := .venvs/bench/.locked-$(call lock-of,bench)
SECURITY := .venvs/security/.locked-$(call lock-of,security)

.PHONY: help setup setup-test demo test check bench fuzz security licences build clean lock chromium

help: ## say what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# --- set-up -----------------------------------------------------------------------------------------------------------

setup: $(DEV) $(EMULATOR) ## install what demo and serve need (.venv and .venvs/emulator)

setup-test: setup $(SAM) chromium ## ... and what the tests need (SAM CLI, Chromium)

# An environment is made once and from then on brought in line in place: others may be running from it.
.venv/bin/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make setup PYTHON=/path/to/python3"; exit 1; }
	@$(call venv,.venv)
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/uv.txt

$(DEV): | .venv/bin/uv
	@echo "installing .venv"
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements/dev.txt
	@rm -f .venv/.locked-*; touch $@

$(EMULATOR): | .venv/bin/uv
	@echo "installing .venvs/emulator"
	@$(call venv,.venvs/emulator,--without-pip)
	@$(BIN)/uv pip sync --quiet --python .venvs/emulator/bin/python --require-hashes requirements/emulator.txt
	@rm -f .venvs/emulator/.locked-*; touch $@

$(SAM): | .venv/bin/uv
	@echo "installing .venvs/sam"
	@$(call venv,.venvs/sam,--without-pip)
	@$(BIN)/uv pip sync --quiet --python .venvs/sam/bin/python --require-hashes requirements/sam.txt
	@rm -f .venvs/sam/.locked-*; touch $@

$(BENCH): | .venv/bin/uv
	@echo "installing .venvs/bench"
	@$(call venv,.venvs/bench,--without-pip)
	@$(BIN)/uv pip sync --quiet --python .venvs/bench/bin/python --require-hashes requirements/bench.txt
	@rm -f .venvs/bench/.locked-*; touch $@

$(SECURITY): | .venv/bin/uv
	@echo "installing .venvs/security"
	@$(call venv,.venvs/security,--without-pip)
	@$(BIN)/uv pip sync --quiet --python .venvs/security/bin/python --require-hashes requirements/security.txt
	@rm -f .venvs/security/.locked-*; touch $@

# Debian keeps ensurepip in a package of its own.
define venv
test -x $(1)/bin/python || $(PYTHON) -m venv $(2) $(1) 2>/dev/null || { \
  rm -rf $(1); $(AS_ROOT) apt-get update -qq; $(AS_ROOT) apt-get install -y -qq python3-venv >/dev/null && $(PYTHON) -m venv $(2) $(1); } || { \
  echo "'python3 -m venv' does not work and python3-venv could not be installed: apt-get install python3-venv"; exit 1; }
endef

chromium:
	@command -v chromium >/dev/null && command -v node >/dev/null || { echo "installing chromium and node"; \
	  { $(AS_ROOT) apt-get update -qq && DEBIAN_FRONTEND=noninteractive $(AS_ROOT) apt-get install -y -qq --no-install-recommends chromium $$(command -v node >/dev/null || echo nodejs) >/dev/null; } 2>/dev/null || \
	  echo "They could not be installed, so the browser tests will fail: apt-get install chromium nodejs"; }

lock: ## resolve requirements/*.in anew
	@cd requirements && for name in uv lambda dev emulator sam bench security; do \
	  $(abspath $(UV)) pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url $$name.in -o $$name.txt; done

# --- run, test, build ---------------------------------------------------------------------------------------------------

demo: setup ## everything on this machine, with real results (ARGS="--once --site-dir site")
	@exec $(BIN)/python -m local demo $(ARGS)

# Fast tests side by side; then those that share one emulator, one after another.
test: setup-test check ## every check and every test
	$(BIN)/pytest -n 2 $(wildcard tests/unit tests/integration tests/deploy) $(ARGS)
	$(BIN)/pytest $(wildcard tests/system tests/browser) $(ARGS)

check: $(DEV) ## format, lint, types, import rules, template
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/cfn-lint -a cfn_lint_serverless.rules -t template.yaml

bench: setup $(BENCH) ## measure against the budgets, each figure beside its peer (ARGS="fold publish --small")
	@$(BIN)/python -m tests.bench $(ARGS)

fuzz: setup ## 10,000 made-up requests to every route (FUZZ_CASES=..., FUZZ_SEED=...)
	FUZZ_CASES=$(or $(FUZZ_CASES),10000) FUZZ_SEED=$(or $(FUZZ_SEED),$(shell date +%s)) $(BIN)/pytest tests/integration/test_fuzz.py $(ARGS)

security: $(SECURITY) ## bandit and checkov; their exceptions and reasons are in .bandit.yaml and .checkov.yaml
	.venvs/security/bin/bandit -q -c .bandit.yaml -r shared functions site_builder local
	.venvs/security/bin/checkov --config-file .checkov.yaml

licences: $(DEV) ## write docs/licences.md anew from the lock
	$(BIN)/python -m local.licences

build: setup $(SAM) ## the packages as they are deployed, in .aws-sam/build
	.venvs/sam/bin/sam build

clean: ## remove what was built (environments stay)
	rm -rf .build .aws-sam .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find functions shared site_builder local tests -name __pycache__ -type d -prune -exec rm -rf {} +

# --- what `sam build` calls: the package of each function, by its name in the template -------------------------------

build-%Function:
	@test -n "$(UV)" || { echo "uv is needed to install the locked dependencies: run 'make setup' first"; exit 1; }
	@$(or $(wildcard $(BIN)/python),$(PYTHON)) local/package.py $(shell echo $* | tr A-Z a-z) "$(ARTIFACTS_DIR)" --uv "$(UV)"
