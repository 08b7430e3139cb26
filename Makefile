# Everything starts here. `make` alone lists the targets; each one sets up what it needs,
# from a machine that has nothing but Python 3.11 (or later), make and git.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory --no-builtin-rules

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
export PIP_ROOT_USER_ACTION := ignore

VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
# The oldest Python that will do, and what to look for when PYTHON does not say.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3.14 python3; do \
	if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo "$$python"; break; fi; done)
# Arguments for what runs: make test ARGS='-k fractions', make demo ARGS=--help
ARGS ?=

# Each stamp stands for one finished step of the set-up; make repeats a step only when what it rests on changed.
MADE := $(VENV)/.made
LOCKED := $(VENV)/.locked
READY := $(VENV)/.ready

.PHONY: help
help: ## List the targets
	@echo "Fairpool: fair GPU and compute sharing for AI and ML teams."
	@echo
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | \
		while IFS=$$'\t' read -r target what; do printf '  make %-8s %s\n' "$$target" "$$what"; done

.PHONY: demo
demo: $(READY) ## Watch two teams share a pool of GPUs, with real training
	@$(PY) examples/demo/run.py $(ARGS)

# Tests mostly wait for processes that they start: one worker more than cores, up to four. Each takes whole files in their
# order, in which the long ones come first.
WORKERS := $(shell cores=$$(getconf _NPROCESSORS_ONLN); echo $$((cores < 3 ? cores + 1 : 4)))
SIDE_BY_SIDE := --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: test
test: $(READY) programs ## Run the tests (ARGS='-k fractions' picks some)
	@$(PY) -m pytest $(SIDE_BY_SIDE) $(ARGS)

.PHONY: faults
faults: $(READY) ## Simulate servers in a world in which everything goes wrong (ARGS='--seeds 10000')
	@$(PY) -m tests.simulation $(ARGS)

.PHONY: crashes
crashes: $(READY) programs ## Kill the server at every commit of a day, on both databases, and live each day to its end
	@$(PY) -m tests.crashes $(ARGS)

.PHONY: programs
programs: ## Install the programs that the tests start, where there are none
	@bash tests/install_programs.sh

.PHONY: mutation
mutation: $(READY) ## See which changes of the core no test notices (hours; ARGS='shares' takes one module)
	@$(PY) -m tests.mutation $(ARGS)

.PHONY: check check-format check-style check-types check-imports check-house-rules
check: check-format check-style check-types check-imports check-house-rules ## Check format, style, types, imports and house rules
	@echo "check: all good"
check-format: $(READY)
	@echo "check: format" && { $(PY) -m ruff format --check --quiet . || { echo "Formatted otherwise; make format mends it."; exit 1; }; }
check-style: $(READY)
	@echo "check: style" && $(PY) -m ruff check --quiet .
check-types: $(READY)
	@echo "check: types" && $(PY) -m mypy --no-error-summary
check-imports: $(READY)
	@echo "check: imports" && { $(BIN)/lint-imports > $(VENV)/imports.log 2>&1 || { cat $(VENV)/imports.log; exit 1; }; }
check-house-rules: $(READY)
	@echo "check: house rules" && $(PY) -m pytest -q tests/tidy tests/quality

.PHONY: format
format: $(READY) ## Format the code and mend what can be mended
	@$(PY) -m ruff check --quiet --fix . ; $(PY) -m ruff format .

.PHONY: bench
bench: $(READY) ## Measure speed and memory on this machine
	@$(PY) -m benchmarks $(ARGS)

.PHONY: serve
serve: $(READY) ## Run a server in the foreground, until Ctrl-C
	@exec $(BIN)/fairpool server start --foreground $(ARGS)

.PHONY: docs
docs: $(READY) ## Write the generated reference pages again
	@$(PY) docs/dev/generate.py $(ARGS)

.PHONY: setup
setup: $(READY) ## Make .venv with everything in it; the others do this by themselves
	@echo "Ready: $(BIN)/fairpool"

# An unchanged lock stays as it is; `make lock ARGS=--upgrade` takes what is new.
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header pyproject.toml
.PHONY: lock
lock: $(READY) ## Choose the versions again after a change of dependencies
	@$(COMPILE) --extra server --extra postgres --extra demo --extra dev --output-file requirements/dev.txt $(ARGS)
	@$(COMPILE) --constraint requirements/dev.txt --output-file requirements/client.txt
	@$(subst pyproject.toml,requirements/provider.in,$(COMPILE)) --output-file requirements/provider.txt $(ARGS)
	@echo "Locked: requirements/dev.txt requirements/client.txt requirements/provider.txt"

.PHONY: clean
clean: ## Remove what the targets made, the environment included
	@rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

$(MADE):
	@if [ -z "$(PYTHON)" ]; then echo "Fairpool needs Python 3.11 or later, and none is on the PATH (PYTHON=/path/to/python says where)." >&2; exit 1; fi
	@echo "setup: $(VENV) with $$($(PYTHON) --version)"
	@[ -x $(PY) ] || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "Python could not make a virtual environment. On Debian: apt install python3-venv" >&2; exit 1; }
	@touch $@

$(LOCKED): requirements/dev.txt | $(MADE)
	@echo "setup: packages of requirements/dev.txt (once; a minute or two)"
	@$(PY) -m pip install -qq --require-hashes --requirement requirements/dev.txt
	@touch $@

$(READY): $(LOCKED) pyproject.toml
	@echo "setup: fairpool itself"
	@$(PY) -m pip install -qq --no-deps --no-build-isolation --editable .
	@touch $@
