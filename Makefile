# Everything a newcomer types. Python >= 3.11 with venv is all that must be there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --editable . --group dev
TEST_ARGS ?=
# The oldest versions that pyproject.toml declares, in an environment of their own.
OLDEST := .venv-oldest
OLDEST_READY := $(OLDEST)/.ready
OLDEST_INSTALL := $(BIN)/uv pip install --quiet --python $(OLDEST)/bin/python --constraint constraints-oldest.txt --editable . --group dev
# More than cores: most tests wait for a server or a lease most of the time.
TEST_PROCESSES ?= 4

.PHONY: help setup run dev test oldest partners wordpress redis ghost directus check format lint types contracts bench constraints stop clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## create .venv with the pinned versions

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 setup"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) \
		|| { rm -rf $(VENV); echo "venv is missing: on Debian and Ubuntu install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	@# A second try with the system's certificates: uv brings its own, which a company's proxy is not in.
	@$(INSTALL) || $(INSTALL) --system-certs
	@touch $(READY)

run: $(READY) ## the main job: topics in, proved pages out
	$(BIN)/content-pipeline run

dev: $(READY) ## the Dagster UI on http://127.0.0.1:3000
	DAGSTER_HOME="$(CURDIR)" $(BIN)/dagster dev -w workspace.yaml

test: $(READY) ## run the tests
	@# The same seed everywhere: processes that collect a set in another order refuse to share it.
	PYTHONHASHSEED=0 $(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadgroup $(TEST_ARGS)

oldest: $(OLDEST_READY) ## run the tests of what touches other packages, on the oldest declared versions
	@# By name: to collect all tests for the few that are marked takes longer than to run these.
	PYTHONHASHSEED=0 $(OLDEST)/bin/python -m pytest -n $(TEST_PROCESSES) --dist loadgroup -m oldest $(TEST_ARGS) \
		$$(grep -rl --include='test_*.py' 'mark\.oldest' content_pipeline_tests)

$(OLDEST_READY): $(READY) constraints-oldest.txt
	@$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python $(OLDEST)
	@$(OLDEST_INSTALL) || $(OLDEST_INSTALL) --system-certs
	@touch $(OLDEST_READY)

partners: ## set up the partners some tests run against (llmock, aimock, mitmproxy, Hugo; 340 MB)
	PYTHON=$(PYTHON) scripts/partners.sh

wordpress: ## set up the real WordPress some tests run against (Debian or Ubuntu, as root; 250 MB)
	scripts/wordpress.sh

redis: ## set up the Redis that the test with several machines runs on (Debian or Ubuntu, as root; 2 MB)
	scripts/redis.sh

ghost: ## set up the real Ghost that tests run against with CMS_REAL=ghost (some minutes; 700 MB)
	scripts/ghost.sh

directus: ## set up the real Directus for tests with CMS_REAL=directus (some minutes; 700 MB)
	scripts/directus.sh

check: format lint types contracts test ## everything that must hold before a commit

format: $(READY) ## check the formatting
	$(BIN)/ruff format --check .

lint: $(READY) ## check the style
	$(BIN)/ruff check .

types: $(READY) ## check the types
	$(BIN)/mypy

contracts: $(READY) ## check who may import whom
	$(BIN)/lint-imports

bench: $(READY) ## measure; prints tables, asserts nothing
	$(BIN)/python -m benchmarks

constraints: $(READY) ## resolve the pinned versions anew
	@echo '# Versions that are known to work together. Made by `make constraints`; never edited by hand.' > constraints.txt
	$(BIN)/uv pip compile pyproject.toml --group dev --all-extras --universal --python-version 3.11 \
		--no-header --no-annotate --quiet --upgrade >> constraints.txt
	@echo '# The oldest versions that pyproject.toml declares. Made by `make constraints`; never edited by hand.' > constraints-oldest.txt
	$(BIN)/uv pip compile pyproject.toml --group dev --all-extras --universal --python-version 3.11 \
		--resolution lowest-direct --no-header --no-annotate --quiet --upgrade >> constraints-oldest.txt

stop: $(READY) ## stop the embedded database and the sandbox provider
	$(BIN)/content-pipeline sandbox stop
	$(BIN)/content-pipeline db stop

clean: stop ## remove everything that running left here, published pages included
	rm -rf .content_pipeline public reports
