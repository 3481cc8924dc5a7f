SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

# What setup has done for this checkout. Java, the server and the jars live outside it and are looked at each time.
SYNCED := .venv/.synced
WARMED := .venv/.warmed

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## make everything ready: Python packages, Java, jars, a MySQL server; a second run only redoes what changed
	@echo "setting up; the first time takes some minutes"
	@$(MAKE) -j3 ready

.PHONY: demo
demo: setup ## load a MySQL server into Iceberg on this machine, from nothing
	@.venv/bin/loader demo

.PHONY: airflow
airflow: setup ## run Airflow with the DAGs on this machine; Ctrl-C stops it
	@infra/airflow.sh

.PHONY: test
test: setup ## run all tests, with real servers, in three parts at once
	@$(MAKE) -j3 --output-sync=target test-commands test-tables test-parts

# Whole runs of commands, stores and catalogs wait for other processes, merges and DAGs for Spark, most tests for one core.
COMMANDS := tests/e2e tests/contract
TABLES := tests/dags tests/infra tests/cases tests/chaos tests/integration/materialise
# The unit tests come first: until Spark is needed, the others have made the archive of classes that speeds it up.
PARTS := tests/unit $(filter-out $(COMMANDS) $(TABLES) tests/unit tests/integration %/__pycache__,\
		$(patsubst %/,%,$(wildcard tests/*/ tests/integration/*/)))
# Every file with tests that only run in the sweep.
SWEEP = tests/cases $(sort $(wildcard tests/integration/materialise/live/*/test_*.py) \
		$(shell grep -rlE --include='test_*.py' 'mark\.sweep|IN_SWEEP' tests))

.PHONY: test-commands
test-commands:
	@PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/pytest -p no:cacheprovider $(COMMANDS)
	@$(MAKE) test-checked

.PHONY: test-tables
test-tables:
	@PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/pytest $(TABLES)

.PHONY: test-parts
test-parts:
	@PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/pytest -p no:cacheprovider $(PARTS)

# Kernels that check every index: they are compiled on the first run after a change, for half a minute.
CHECKED := tests/unit/kernels tests/unit/initial_load tests/unit/native_collapse $(addprefix tests/unit/binlog/,test_fuzz.py \
	events/test_compressed_events.py values/test_compressed_columns.py values/test_json.py events/test_packets.py)

.PHONY: test-checked
test-checked:
	@LOADER_CHECK_KERNELS=1 .venv/bin/pytest -p no:cacheprovider -q $(CHECKED)

.PHONY: test-fast
test-fast: $(SYNCED) ## run the unit tests only
	@.venv/bin/pytest -m "not integration and not e2e"

.PHONY: sweep
sweep: setup ## the long tests: a delta killed at every point, on every store, logs of gigabytes
	@PATH="$(CURDIR)/.venv/bin:$$PATH" LOADER_SWEEP=1 .venv/bin/pytest $(SWEEP)

.PHONY: combination
combination: setup ## the tests of another Airflow and Spark, such as NAME=airflow-3.1-spark-4.1; ARGS=... for pytest instead
	@.venv/bin/python -m infra.combinations test $(NAME) $(ARGS)

.PHONY: fuzz
fuzz: setup ## random tables, altered ones, damaged logs and servers, with checks in all kernels; SECONDS=300 of each, SEED=...
	@seed="$(or $(SEED),$$RANDOM)"; echo "seed $$seed"; PATH="$(CURDIR)/.venv/bin:$$PATH" LOADER_FUZZ_SEED="$$seed" \
		LOADER_FUZZ_SECONDS="$(or $(SECONDS),300)" LOADER_CHECK_KERNELS=1 .venv/bin/pytest --hypothesis-seed="$$seed" \
		$(CHECKED) tests/unit/binlog tests/integration/types/test_random.py tests/integration/binlog/test_mutations.py \
		tests/integration/schema

.PHONY: chaos
chaos: setup ## random writes, statements and faults, compared from outside; MINUTES=10, SEED=... to run one again, ARGS=...
	@.venv/bin/python -m tests.chaos --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED)) $(ARGS)

.PHONY: bench-codec
bench-codec: setup ## measure the codec against other readers of the log; QUICK=1 with a tenth of the log
	@infra/uv.sh sync --frozen --all-extras --group bench --quiet
	@.venv/bin/python -m tests.bench.codec $(if $(QUICK),--quick)

.PHONY: bench-merge
bench-merge: setup ## measure merges by the size of the table and where the changes are; QUICK=1 with a tenth of the rows
	@.venv/bin/python -m tests.bench.merge $(if $(QUICK),--quick)

.PHONY: bench-e2e
bench-e2e: setup ## measure whole deltas beside mysqlbinlog -v of the same log; QUICK=1 with a tenth of the log
	@.venv/bin/python -m tests.bench.e2e $(if $(QUICK),--quick)

.PHONY: bench-airflow
bench-airflow: setup ## measure runs of the delta DAG in a real Airflow beside loader run; QUICK=1 with one pair
	@.venv/bin/python -m tests.bench.airflow $(if $(QUICK),--quick)

.PHONY: bench-cluster
bench-cluster: setup ## measure a load and a delta on a cluster of two workers beside local[2]; QUICK=1 with a tenth of the rows
	@.venv/bin/python -m tests.bench.cluster $(if $(QUICK),--quick)

.PHONY: bench-many
bench-many: setup ## measure commands with 1,000 tables and with 50 sources; QUICK=1 with a tenth of them
	@.venv/bin/python -m tests.bench.many $(if $(QUICK),--quick)

.PHONY: bench-initial
bench-initial: setup ## measure initial loads beside spark.read.jdbc and mysqldump; QUICK=1 with a tenth of the rows
	@.venv/bin/python -m tests.bench.initial $(if $(QUICK),--quick)

.PHONY: lint
lint: $(SYNCED) ## check style, formatting, types, layers and spelling
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.venv/bin/mypy -p infra.servers -p infra.pages -p infra.catalogs -m infra.jars -m infra.combinations
	@.venv/bin/lint-imports
	@.venv/bin/codespell loader dags docs infra sql tests *.md

.PHONY: hooks
hooks: $(SYNCED) ## let git run the checks of style and types before each commit
	@.venv/bin/pre-commit install

.PHONY: docs
docs: $(SYNCED) ## build the documentation into site/, and check its links and anchors
	@infra/uv.sh sync --frozen --all-extras --group docs --quiet
	@NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs build --strict --quiet

.PHONY: docs-serve
docs-serve: docs ## show the documentation in a browser, and build it again after each change
	@NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs serve

.PHONY: screenshots
screenshots: setup ## make the pictures of the status pages in docs/assets again, after a change of the pages
	@.venv/bin/python -m infra.pages.screenshots

.PHONY: wheel
wheel: ## build the wheel into dist/
	@infra/uv.sh build --wheel --out-dir dist

.PHONY: constraints
constraints: $(SYNCED) ## write the locked versions for pip, without and with digests, and those of other combinations
	@infra/uv.sh export --frozen --all-extras --no-dev --no-emit-project --no-hashes --quiet \
		--output-file constraints.txt
	@infra/uv.sh export --frozen --all-extras --no-dev --no-emit-project --quiet --output-file requirements.txt
	@.venv/bin/python -m infra.combinations constraints

.PHONY: clean
clean: ## delete what was made in the checkout; what was fetched stays in the cache folder
	@rm -rf .venv dist build site .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache spark-warehouse
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The steps of setup.

.PHONY: ready
ready: java server jars $(WARMED)
	@:

.PHONY: java
java:
	@infra/step.sh "java" infra/java.sh

.PHONY: server
server:
	@python=$$(infra/python.sh); infra/step.sh "mysql server" "$$python" -m infra.servers fetch

.PHONY: jars
jars: java $(SYNCED)
	@infra/step.sh "jars" .venv/bin/python infra/jars.py

$(SYNCED): uv.lock pyproject.toml
	@python=$$(infra/python.sh); infra/step.sh "python packages" infra/uv.sh sync --frozen --all-extras --compile-bytecode \
		--python "$$python"
	@touch $@

$(WARMED): $(SYNCED) $(wildcard loader/binlog/*.py loader/binlog/*/*.py loader/reader/*.py loader/initial_load/*/*.py)
	@.venv/bin/python -m compileall -q loader
	@infra/step.sh "compiled kernels" .venv/bin/loader warm
	@touch $@
