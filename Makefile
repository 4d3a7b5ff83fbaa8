PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MATRIX := 4.1 4.2 4.3
# Of these `make test-pythons` tries those that are on this machine.
PYTHONS ?= 3.10 3.11 3.12 3.13 3.14
WORKERS ?= auto
# Each has a Spark session of its own, about 2 GB.
SPARK_WORKERS ?= 2

# Another Spark than the newest for the wheel: make wheel WHEEL_SPARK="pyspark==4.1.*"
WHEEL_SPARK ?=

# How long and on which stores: make test-chaos SECONDS=600 CHAOS_STORES="local minio"
SECONDS ?= 300
CHAOS_STORES ?= local minio fake-gcs-server azurite hdfs

# Where make try-image makes its root.
IMAGE ?= /tmp/delta_ds-image

# For make release-check.
TAG ?=

# Extra arguments for pytest, ruff and the benchmarks: make test-fast ARGS="-k replay"
ARGS ?=

# A test that does not end is told with the stacks of its threads, and fails; those of the full form may take hours.
ENDS := $(if $(DELTA_DS_FULL),,-o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true --max-worker-restart 0)

NO_JVM := not spark and not connect and not stores and not interop and not engines and not dbt and not orchestrators and not cluster and not browser and not unity and not clients
SPARK_TESTS := (spark or connect) and not stores and not interop and not engines and not cluster and not unity
# One session for a file's tests, and the long ones first.
SPARK_ONLY := -n $(SPARK_WORKERS) --dist loadfile --no-loadscope-reorder $(ENDS)
# What every Spark is asked; records of other engines and examples say nothing of a Spark that these do not.
MATRIX_ROOMS := spark_tests/behaviour/spark spark_tests/engines/differential spark_tests/product/examples
# Races, killed writers and failing storage take their time, however few.
NOT_QUICK := --ignore spark_tests/faults/concurrency --ignore spark_tests/product/benchmarks

# Says which target is on, how far that is, and when it began.
in_turn = for target in $(1); do done="$$done $$target"; set -- $(1); \
	echo "== $$(date +%H:%M:%S) $$(echo $$done | wc -w | tr -d ' ') of $$\#: make $$target"; \
	$(MAKE) --no-print-directory $$target || exit 1; done

.DEFAULT_GOAL := help
.PHONY: help setup quickstart format check test test-long lint types docs test-quick test-fast test-patient test-browser test-spark test-spark-short test-spark-long test-emulated test-stores test-chaos test-interop engines engines-page test-dbt test-unity test-cluster test-matrix test-pythons try-dist nightly dist release-check sbom tested-versions wheel bench bench-compare clean check-python check-java test-orchestrators test-airflow test-dagster test-kedro try-image test-clients

help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.dev ## Make .venv with everything for development

quickstart: check-java $(VENV)/.installed ## Install into .venv and read a real table: start here. Installs Java where there is none
	@$(BIN)/python examples/quickstart.py

format: $(VENV)/.dev ## Format the code, and mend what ruff can
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format --quiet .

check: lint types test-quick ## Before every commit: style, types, import rules, quick tests; under three minutes, no Java

test: check-java $(VENV)/.dev ## Before a pull request: style, types, and each behaviour that README and guide describe; a quarter of an hour on two cores
	@$(call in_turn,lint types test-quick test-browser test-spark-short)

test-long: check-java $(VENV)/.dev ## The rest of what CI runs: laws in full, emulated stores, the wheel, the same behaviour of every kind of session, type and table
	@$(call in_turn,test-patient test-emulated wheel test-spark-long)

lint: $(VENV)/.dev ## Format and style (ruff), import rules (import-linter), generated parts of docs/, plain English
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/generate_docs.py --check
	$(BIN)/python scripts/check_prose.py

types: $(VENV)/.dev ## Type check (mypy --strict)
	$(BIN)/mypy

docs: $(VENV)/.dev ## Write the generated parts of docs/ anew, and build the documentation site into site/
	$(BIN)/python scripts/generate_docs.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

test-quick: $(VENV)/.dev ## Tests without Java that are quick, and laws on fewer examples
	DELTA_DS_QUICK=1 $(BIN)/python -m pytest -q -n $(WORKERS) -m "$(NO_JVM) and not slow" $(NOT_QUICK) $(ENDS) $(ARGS)

test-fast: $(VENV)/.dev ## All tests that need no Java
	$(BIN)/python -m pytest -n $(WORKERS) -m "$(NO_JVM)" $(ENDS) $(ARGS)

test-patient: $(VENV)/.dev ## Those of them that `make test-quick` leaves out, or tries on fewer examples
	$(BIN)/python -m pytest -n $(WORKERS) -m "$(NO_JVM) and not_quick" $(ENDS) $(ARGS)

test-browser: $(VENV)/.dev ## The page of `pydelta ui`, and what notebooks show, in a headless Chromium, which Debian's packages bring (root)
	scripts/install_browser.sh
	$(BIN)/python -m pytest -m browser spark_tests/behaviour/cli/ui spark_tests/behaviour/kernel/commands/plot $(ARGS)

test-spark: check-java $(VENV)/.dev ## Tests that start Spark or a Connect server
	$(BIN)/python -m pytest $(SPARK_ONLY) -m "$(SPARK_TESTS)" $(ARGS)

test-spark-short: check-java $(VENV)/.dev ## Those of them that `make test` runs
	$(BIN)/python -m pytest $(SPARK_ONLY) -m "$(SPARK_TESTS) and not long" $(ARGS)

test-spark-long: check-java $(VENV)/.dev ## Those of them that `make test-long` runs
	$(BIN)/python -m pytest $(SPARK_ONLY) -m "$(SPARK_TESTS) and long" $(ARGS)

test-emulated: $(VENV)/.dev ## Tests against an emulated S3 and DynamoDB (moto); no Java
	$(BIN)/python -m pytest -n $(WORKERS) -m "stores and not spark" $(ENDS) $(ARGS)

test-stores: check-java $(VENV)/.dev ## The same against MinIO, fake-gcs-server, Azurite and HDFS, and Spark on s3a:// and hdfs:// (needs Go, npm and Maven)
	scripts/install_store_servers.sh .stores
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev,gcs,azure,hdfs]"
	DELTA_DS_STORE_SERVERS=$(CURDIR)/.stores DELTA_DS_REQUIRE_STORES=1 $(BIN)/python -m pytest -m "stores and not spark" $(ARGS)
	DELTA_DS_STORE_SERVERS=$(CURDIR)/.stores DELTA_DS_REQUIRE_STORES=1 $(BIN)/python -m pytest -m "stores and spark" $(ARGS)

test-chaos: check-java $(VENV)/.dev ## A load on stores that make trouble, SECONDS on each; prints a table (needs Go, npm and Maven)
	scripts/install_store_servers.sh .stores
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev,gcs,azure,hdfs]"
	DELTA_DS_STORE_SERVERS=$(CURDIR)/.stores DELTA_DS_REQUIRE_STORES=1 $(BIN)/python -m spark_tests.faults.chaos.load $(CHAOS_STORES) --seconds $(SECONDS) $(ARGS)

test-interop: check-java .venv-interop/.installed ## Tables both ways with delta-spark and deltalake, feature by feature
	.venv-interop/bin/python -m pytest -m interop spark_tests/engines/interop $(ARGS)

engines: check-java .venv-engines/.installed ## A table a feature, read by every engine: fails where one reads worse than docs/engines.md says
	.venv-engines/bin/python -m pytest -q -m engines spark_tests/engines/interop/engines $(ARGS)

engines-page: check-java .venv-engines/.installed $(VENV)/.dev ## The same, written into docs/engines.md
	.venv-engines/bin/python -m spark_tests.engines.interop.engines --record
	$(BIN)/python scripts/generate_docs.py

test-dbt: check-java .venv-dbt/.installed ## A dbt project on Delta tables, run by dbt itself: in its own session, and through pydelta serve --thrift
	.venv-dbt/bin/python -m pytest -m dbt spark_tests/engines/dbt $(ARGS)

test-orchestrators: check-java test-airflow test-dagster test-kedro ## The examples for Airflow, Dagster and Kedro, run by these themselves, each in an environment of its own

test-airflow test-dagster test-kedro: test-%: .venv-%/.installed
	.venv-$*/bin/python -m pytest -m orchestrators spark_tests/engines/orchestrators/test_$*.py $(ARGS)
test-clients: check-java .venv-clients/.installed .venv-thin/.installed .venv-suites/.installed ## pyhive and SQLAlchemy as clients of pydelta serve --thrift, pyspark-client as one of --connect; test suites of other projects
	DELTA_DS_THIN_CLIENT=$(CURDIR)/.venv-thin/bin/python .venv-clients/bin/python -m pytest -m clients spark_tests/engines/clients $(ARGS)

test-unity: check-java $(VENV)/.dev ## Catalog-managed tables of the open-source Unity Catalog server (needs Maven)
	[ -n "$$DELTA_DS_UNITY_SERVER" ] || scripts/install_unity_catalog.sh .unity
	DELTA_DS_UNITY_SERVER="$${DELTA_DS_UNITY_SERVER:-$(CURDIR)/.unity}" DELTA_DS_REQUIRE_UNITY=1 $(BIN)/python -m pytest -m unity spark_tests/engines/unity $(ARGS)

test-cluster: check-java $(VENV)/.dev ## Clusters of real processes: tasks fail, executors are killed; prints a table
	$(BIN)/python -m pytest spark_tests/faults/clusters $(ARGS)

test-matrix: check-java $(MATRIX:%=.venv-%/.installed) ## Reading, writing, commands, SQL and streams on every supported Spark, each in a venv of its own
	@for version in $(MATRIX); do \
		echo "== pyspark $$version"; \
		DELTA_DS_QUICK=1 .venv-$$version/bin/python -m pytest -q $(SPARK_ONLY) -m "$(SPARK_TESTS) and not slow" $(ARGS) $(MATRIX_ROOMS) || exit 1; \
	done

test-pythons: dist try-dist ## Wheel and sdist in bare environments, then the quick tests, on each of PYTHONS that is here

try-dist: check-java ## The same with the files that are in dist/
	$(PYTHON) scripts/try_pythons.py $(PYTHONS) --tests "-n $(WORKERS) -m '$(NO_JVM) and not slow' $(NOT_QUICK)" $(ARGS)

nightly: test test-long test-pythons test-interop engines test-stores test-unity test-cluster test-chaos test-dbt test-orchestrators check-java $(MATRIX:%=.venv-%/.installed) test-clients ## All there is, in full; takes hours
	@for version in $(MATRIX); do \
		echo "== pyspark $$version"; \
		DELTA_DS_FULL=1 .venv-$$version/bin/python -m pytest -q $(SPARK_ONLY) -m "$(SPARK_TESTS)" $(ARGS) $(MATRIX_ROOMS) || exit 1; \
	done

try-image: dist ## The slim Dockerfile of examples/docker without Docker: line by line in a Debian root, IMAGE (root, debootstrap)
	$(PYTHON) scripts/try_dockerfile.py examples/docker/python.Dockerfile $(IMAGE)

dist: $(VENV)/.dev ## Build dist/: sdist and, of that, the wheel; the version is that of the git tag
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m build --wheel --outdir dist distributions/delta-names

tested-versions: $(VENV)/.dev ## Write what the environments here hold into docs/tested-versions.md, after their tests have passed
	$(PYTHON) scripts/tested_versions.py --environments
	$(BIN)/python scripts/generate_docs.py

release-check: check-python ## Whether TAG=v1.2.0, the changelog and dist/ make a release
	$(PYTHON) scripts/check_release.py '$(TAG)'

sbom: $(VENV)/.dev ## Write sbom/: every package that the wheel of dist/ brings with all extras (CycloneDX); fails at a licence that is not permissive. ARGS=--page writes docs/dependencies.md
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev,release]"
	$(BIN)/python scripts/sbom.py $(ARGS)

wheel: check-java dist ## Build dist/; every example and command with what the wheel brings
	rm -rf .venv-wheel
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl $(WHEEL_SPARK)
	cd .venv-wheel && bin/python ../scripts/try_wheel.py
	# Copies, beside which no checkout lies: what is checked is the package of the wheel.
	mkdir .venv-wheel/users && cp spark_tests/product/typed_users/pipeline.py spark_tests/product/typed_users/without_spark.py .venv-wheel/users
	cd .venv-wheel/users && ../../$(BIN)/mypy --strict --config-file= --python-executable ../bin/python pipeline.py without_spark.py

bench: check-java $(VENV)/.installed .venv-peers/.installed .venv-tpcds/.installed ## Side by side against deltalake and Spark's Parquet reader, as Markdown
	@$(BIN)/python -m benchmarks.run --peer-python .venv-peers/bin/python --tpcds-python .venv-tpcds/bin/python $(ARGS)

bench-compare: $(VENV)/.installed .venv-peers/.installed ## What became more than 10 % slower beside deltalake since the last release (ARGS="--record 1.2.0" writes its ratios)
	@$(BIN)/python -m benchmarks.compare --peer-python .venv-peers/bin/python $(ARGS)

clean: ## Remove environments, caches and benchmark data
	rm -rf .venv .venv-* .stores .unity site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist sbom benchmarks/.work spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

check-python:
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.10+ is needed: there is no $(PYTHON) on PATH; install it or run make PYTHON=..."; exit 1; }
	@$(PYTHON) scripts/check_machine.py python

check-java: check-python
	@$(PYTHON) scripts/check_machine.py java --install

$(BIN)/python: | check-python
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@ $(VENV)/.installed

.venv-peers/.installed: | check-python
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check deltalake pyarrow
	@touch $@

.venv-tpcds/.installed: | check-python
	$(PYTHON) -m venv .venv-tpcds
	.venv-tpcds/bin/python -m pip install --quiet --disable-pip-version-check duckdb duckdb-extension-tpcds sqlglot
	@touch $@

.venv-interop/.installed: pyproject.toml | check-python
	$(PYTHON) -m venv .venv-interop
	.venv-interop/bin/python -m pip install --quiet --disable-pip-version-check --editable . "pyspark==4.2.0" "delta-spark==4.4.0" deltalake pytest hypothesis
	@touch $@

# The extension of DuckDB fits the release of the same number, and no other.
.venv-engines/.installed: pyproject.toml | check-python
	$(PYTHON) -m venv .venv-engines
	.venv-engines/bin/python -m pip install --quiet --disable-pip-version-check --editable . "pyspark==4.2.0" "delta-spark==4.4.0" deltalake polars pandas daft chdb delta-kernel-rust-sharing-wrapper "pyiceberg[pyarrow]" "duckdb==1.5.5" "duckdb-extension-delta==1.5.5" pytest hypothesis
	@touch $@

.venv-dbt/.installed: pyproject.toml | check-python
	$(PYTHON) -m venv .venv-dbt
	.venv-dbt/bin/python -m pip install --quiet --disable-pip-version-check --editable . "pyspark==4.2.*" "dbt-core==1.11.*" "dbt-spark[PyHive]==1.11.*" pytest hypothesis
	@touch $@

.venv-clients/.installed: pyproject.toml | check-python
	$(PYTHON) -m venv .venv-clients
	.venv-clients/bin/python -m pip install --quiet --disable-pip-version-check --editable . "pyhive[hive-pure-sasl]==0.7.*" "sqlalchemy>=2" pytest hypothesis
	.venv-clients/bin/python -c "import pyhive.hive, sqlalchemy"
	@touch $@

# Without pyspark, which this package asks pip for: pyspark-client has a part of the same modules.
.venv-thin/.installed: pyproject.toml | check-python
	$(PYTHON) -m venv .venv-thin
	.venv-thin/bin/python -m pip install --quiet --disable-pip-version-check "pyspark-client>=4.1" "pandas>=2.2,<3" numpy pyarrow fsspec sqlglot pyroaring tzdata
	.venv-thin/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

# Projects whose tests run on this package, with the source distributions that these tests are part of.
SUITES := koheesio==0.11.1
.venv-suites/.installed: pyproject.toml | check-python
	$(PYTHON) -m venv .venv-suites
	.venv-suites/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[connect]" "pyspark==4.2.*" "pandas<3" $(SUITES) chispa freezegun pytest pytest-asyncio pytest-mock pytest-order
	.venv-suites/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary koheesio --dest .venv-suites/sources $(SUITES)
	@touch $@

# Each in its own: what they ask of the same packages does not go together.
.venv-airflow/.installed: pyproject.toml | check-python
	$(PYTHON) -m venv .venv-airflow
	.venv-airflow/bin/python -m pip install --quiet --disable-pip-version-check --editable . "apache-airflow==3.3.*" pytest hypothesis
	@touch $@

.venv-dagster/.installed: pyproject.toml | check-python
	$(PYTHON) -m venv .venv-dagster
	.venv-dagster/bin/python -m pip install --quiet --disable-pip-version-check --editable . "dagster==1.13.*" pytest hypothesis
	@touch $@

# Its datasets for Spark import pandas when they save.
.venv-kedro/.installed: pyproject.toml | check-python
	$(PYTHON) -m venv .venv-kedro
	.venv-kedro/bin/python -m pip install --quiet --disable-pip-version-check --editable . "pyspark==4.2.*" "kedro==1.7.*" "kedro-datasets[spark-local]==9.6.*" "pandas<3" pytest hypothesis
	@touch $@

.venv-%/.installed: pyproject.toml | check-python
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[connect]" "pyspark==$*.*" pytest pytest-xdist hypothesis chispa requests
	@touch $@
