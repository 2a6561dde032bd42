# `make demo` and `make test` set everything up by themselves; nothing is installed twice.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help setup demo test check lint types layers pytest format bench docs dist test-minimum clean

help:
	@echo "make demo   train ERM and UMIX on embedded data and print the comparison"
	@echo "make test   every check: format, lint, types, layers, tests"
	@echo "make check  the quick checks: all of that without the slow tests"
	@echo "make bench  measure speed and quality; rewrites benchmarks/results/*.json"
	@echo "make docs   build the documentation into site/"
	@echo "make dist   build the wheel and the sdist into dist/ and try them in an empty environment"
	@echo "make test-minimum  the quick tests with the oldest versions that pyproject.toml allows"
	@echo "make clean  remove the environment and caches (runs/ is left alone)"

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("umix needs Python 3.11 or newer, got %d.%d; try make PYTHON=python3.11" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing umix and the tested set of its dependencies into $(VENV) (once, a minute or two) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

setup: $(READY)

demo: $(READY)
	$(BIN)/umix demo

test: lint types layers pytest

check: lint types layers
	$(BIN)/pytest -q -n logical --maxprocesses 4 -m "not slow" tests

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports

pytest: $(READY)
	$(BIN)/pytest -n logical --maxprocesses 4

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)
	$(BIN)/python benchmarks/loop.py
	$(BIN)/python benchmarks/quality.py
	$(BIN)/python benchmarks/steps.py
	$(BIN)/python benchmarks/table.py
	$(BIN)/python benchmarks/methods.py
	$(BIN)/python benchmarks/images.py
	$(BIN)/python benchmarks/uncertainty.py
	$(BIN)/python benchmarks/study.py

# Pages whose source is the code are written first; they are not in the repository. With --quiet, --strict would count no warning.
docs: $(READY)
	$(BIN)/python docs/generate
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Open site/index.html in a browser: it needs no server and no network."

dist: $(READY)
	rm -rf dist
	$(BIN)/python -m build --quiet
	PYTHON=$(BIN)/python .ci/check-dist

# The lower bounds of pyproject.toml in an environment of their own. With pytest 9 the checks of scikit-learn 1.8 warn.
MINIMUM := .venv-minimum
test-minimum:
	rm -rf $(MINIMUM) && $(PYTHON) -m venv $(MINIMUM)
	$(MINIMUM)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-minimum.txt -e '.[hf,search]' \
	  'pytest<9' fairlearn hypothesis pytest-randomly pytest-socket pytest-xdist
	$(MINIMUM)/bin/pytest -q -n logical --maxprocesses 4 -m "not slow" tests

clean:
	rm -rf $(VENV) $(MINIMUM) dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .cache site
