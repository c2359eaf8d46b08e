# Needs Python >= 3.10, a Rust toolchain and make; everything else goes into .venv and target/.
# Paths are relative, so that a checkout may lie in a folder whose name has spaces.

PYTHON ?= python3
BIN := .venv/bin
CARGO_FLAGS := --locked
SECONDS := 60
TARGETS :=
PAGES :=
WHEEL :=
DEMO := all-reduce --topology dgx_a100_2box --size 256MB

# pyo3 then looks at one interpreter in every step and is not built anew for each.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
# Tests start hundreds of processes: without bytecode, each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE
export PIP_QUIET := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
# One choice of crates everywhere: with another, cargo joins other features and builds all anew.
LIBRARIES := $(addprefix -p ,hocket-derive hocket-base hocket-topology hocket-steering hocket-fabric hocket-plan hocket-packing hocket-synth hocket-program \
  hocket-train hocket-core hocket-formats hocket-runtime hocket-control hocket-wire hocket-agent hocket-controller)
CRATES := $(LIBRARIES) -p hocket-preload -p hocket-nccl-tuner
# Two of these go on at once: cargo builds for release and for tests beside each other, and what a test waits
# for is another's time. Nothing runs before all that it may start is built.
BUILDS := build compile fmt ruff clippy
RUNS := cargo-test mypy stubtest pytest doc
CHECKS := $(BUILDS) $(RUNS)
JOBS := $(shell nproc 2>/dev/null || echo 2)

STATIC := x86_64-unknown-linux-musl

.PHONY: help tools venv torch page browser build controller wheel sdist static schema site demo check test test-slow test-long protocol accept oracle fuzz corpus bench clean $(filter-out build,$(CHECKS)) unit examples
.DEFAULT_GOAL := help

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

tools:
	@$(PYTHON) -c 'import sys' >/dev/null 2>&1 || { \
	  echo 'make: $(PYTHON) was not found; install Python 3.10 or later, or name one: make PYTHON=/path/to/python3' >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "make: $(PYTHON) is $$($(PYTHON) -V 2>&1), hocket needs 3.10 or later; name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo 'make: $(PYTHON) has no venv module; install it (Debian and Ubuntu: apt install python3-venv)' >&2; exit 1; }
	@command -v cargo >/dev/null 2>&1 || { \
	  echo 'make: cargo was not found; install Rust from https://rustup.rs and open a new shell' >&2; exit 1; }

venv: .venv/deps.stamp ## make .venv and install what building and testing need

.venv/deps.stamp: pyproject.toml | tools
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --group dev
	@touch $@

torch: .venv/deps.stamp ## install PyTorch, for the tests that need it (3 GB to load, 5 GB installed on Linux)
	$(BIN)/python -m pip install 'torch>=2.4'

page: ## build the explorer's page of its TypeScript sources; needs Node (the built page is checked in)
	cd explorer && npm ci --no-audit --no-fund --loglevel=error && npm run --silent check && npm run --silent build

browser: .venv/deps.stamp ## install what drives the explorer's page in a browser, and Chromium where there is none
	$(BIN)/python -m pip install --group browser
	@command -v chromium chromium-browser google-chrome >/dev/null 2>&1 || $(BIN)/playwright install chromium

build: .venv/build.stamp ## build the Rust core, write its stubs and install the package, studies and testbed into .venv

.venv/build.stamp: .venv/beside.stamp $(RUST_SOURCES)
	VIRTUAL_ENV="$(CURDIR)/.venv" $(BIN)/maturin develop --release --generate-stubs
	@touch $@

.venv/beside.stamp: studies/pyproject.toml testbed/pyproject.toml | .venv/deps.stamp
	$(BIN)/python -m pip install --no-deps --editable studies --editable testbed
	@touch $@

controller: .venv/deps.stamp ## build the routing controller, its agent and the preloaded library, and install them into .venv
	cargo install $(CARGO_FLAGS) --quiet --force --profile service --root .venv --path crates/hocket-controller
	cargo install $(CARGO_FLAGS) --quiet --force --profile service --root .venv --path crates/hocket-agent
	cargo build $(CARGO_FLAGS) --quiet --profile preload -p hocket-preload
	install -D -m 755 target/preload/libhocket_preload.so .venv/lib/libhocket_preload.so

wheel: .venv/deps.stamp ## build the wheel into dist/: for this machine, or for WHEEL, say aarch64-unknown-linux-gnu (rustup target add)
ifneq ($(WHEEL),)
	$(BIN)/python -m pip install 'maturin[zig]'
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/maturin build --release --locked --generate-stubs --zig --target $(WHEEL) --out dist
else
	$(BIN)/maturin build --release --locked --generate-stubs --out dist
endif

sdist: .venv/build.stamp ## build the source distribution into dist/
	$(BIN)/maturin sdist --out dist

static: | tools ## build controller and agent without any library into dist/, for STATIC (musl-tools, rustup target add)
	cargo build $(CARGO_FLAGS) --quiet --profile service --target $(STATIC) -p hocket-controller -p hocket-agent
	mkdir -p dist
	for name in hocket-controller hocket-agent; do cp target/$(STATIC)/service/$$name dist/$$name-$(STATIC); done

schema: .venv/build.stamp ## write the JSON Schemas into docs/schema
	$(BIN)/python -m hocket.cli.schema all docs/schema

site: .venv/build.stamp ## build the documentation site into target/site; warnings are errors
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -c docs/site docs target/site

demo: build ## all-reduce of 256 MB on two DGX A100: healthy, then without a link to a NIC
	$(BIN)/hocket compare $(DEMO)
	$(BIN)/hocket compare $(DEMO) --failed b0g0,b0nic0

check: .venv/build.stamp ## format, lint, types and unit tests: what to run before each commit
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target fmt ruff clippy mypy unit
	@echo 'make check: all passed'

test: .venv/deps.stamp ## every check below but the slow tests
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target $(BUILDS)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target $(RUNS)
	@echo 'make test: all checks passed ($(CHECKS))'

fmt: | tools ## rustfmt: is the Rust code formatted?
	@# Not `cargo fmt`, which does not see the modules that a macro declares.
	@rustfmt --check --edition 2024 $(filter %.rs,$(RUST_SOURCES))

clippy: .venv/deps.stamp ## clippy on everything, warnings are errors
	cargo clippy $(CARGO_FLAGS) --quiet --workspace --all-targets -- -D warnings

compile: | tools ## compile the Rust tests, and the programs that other tests start
	cargo test $(CARGO_FLAGS) --quiet --no-run $(CRATES)

cargo-test: | tools ## tests of the Rust core, and of the routing controller and its agent
	@# Without make's flags: examples in documentation look for its job server, and warn that it is closed.
	env -u MAKEFLAGS cargo test $(CARGO_FLAGS) --quiet $(CRATES)

doc: | tools ## documentation of the Rust crates, warnings are errors
	RUSTDOCFLAGS='-D warnings' cargo doc $(CARGO_FLAGS) --quiet --no-deps --lib $(LIBRARIES)

ruff: .venv/deps.stamp ## ruff: lint and format of the Python code
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .

mypy: .venv/build.stamp ## mypy --strict on the package, studies and testbed
	$(BIN)/mypy --strict

stubtest: .venv/build.stamp ## do the stubs of the Rust module tell the truth?
	$(BIN)/python -m mypy.stubtest hocket._core

pytest: .venv/build.stamp ## tests of the Python package, examples included
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal

# Unit tests of the crates pass until a source of theirs changes.
.venv/unit.stamp: $(RUST_SOURCES) | .venv/deps.stamp
	cargo test $(CARGO_FLAGS) --quiet $(CRATES) --lib
	@touch $@

unit: .venv/build.stamp .venv/unit.stamp ## unit tests: of the core, of values and of packages
	$(BIN)/python -m pytest -q -n $(JOBS) tests/test_units.py tests/test_api.py tests/test_packages.py tests/test_project_rules.py tests/files

test-slow: .venv/build.stamp ## the tests that take more than a few seconds each
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m slow

test-long: .venv/build.stamp ## the tests that take minutes: whole studies, every machine, every command
	cargo test $(CARGO_FLAGS) --quiet $(CRATES) --lib -- --ignored
	cargo test $(CARGO_FLAGS) --quiet -p hocket-protocol
	PROPTEST_CASES=256 cargo test $(CARGO_FLAGS) --quiet $(CRATES) --test properties
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m long

examples: .venv/build.stamp ## run the examples only and compare what they print
	$(BIN)/python -m pytest -q tests/test_examples.py

protocol: | tools ## write the code of the controller's protocols from their .proto files
	cargo run $(CARGO_FLAGS) --quiet -p hocket-protocol

accept: .venv/build.stamp ## write what pages, examples and golden files show anew, where PAGES (all) differ; then look at git diff
	$(BIN)/python -m hocket.cli.manual docs/command-line.md
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --accept $(if $(PAGES),-k "$(PAGES)") tests/docs/test_docs.py tests/docs/test_records.py tests/test_structure.py tests/golden tests/test_examples.py tests/topology/test_families.py

oracle: | tools ## 5,000,000 random plans: verify against every interleaving (docs/testing.md)
	HOCKET_ORACLE_PLANS=$${HOCKET_ORACLE_PLANS:-5000000} \
	HOCKET_ORACLE_MEDIUM=$${HOCKET_ORACLE_MEDIUM:-100000} HOCKET_ORACLE_LARGE=$${HOCKET_ORACLE_LARGE:-40000} \
	cargo test $(CARGO_FLAGS) --test interleavings verify_agrees -- --nocapture --test-threads 1

.venv/fuzz.stamp: .venv/build.stamp
	$(BIN)/python -m pip install --group fuzz
	@touch $@

fuzz: .venv/fuzz.stamp ## fuzz every entry point for SECONDS (60) each; TARGETS names some (docs/fuzzing.md)
	$(BIN)/python fuzz/run.py --seconds $(SECONDS) $(TARGETS)

corpus: .venv/fuzz.stamp ## write the archives of the fuzz corpus anew, with what fuzzing found
	$(BIN)/python fuzz/run.py --seconds 0 --keep $(TARGETS)

bench: .venv/build.stamp ## time the stages of the core (bench/RESULTS.md has the figures)
	cargo bench $(CARGO_FLAGS)

clean: ## remove .venv and all that was built
	rm -rf .venv target fuzz/target fuzz/work python/hocket/*.so python/hocket/_core
