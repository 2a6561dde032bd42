# `make demo` and `make test` set everything up by themselves; nothing is installed twice.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
READY_SYSTEM := $(VENV)/.ready-system
# Compiled files are kept, whatever the environment says: without them every test process compiles all tests again.
unexport PYTHONDONTWRITEBYTECODE
# What make test runs. The files that are left out are system tests as a whole, and import their library first, which takes seconds.
ORDINARY := -n logical --maxprocesses 4 -m "not system" --ignore=tests/adapters/test_lightning.py --ignore=tests/bench/executors/test_ray.py

.PHONY: help setup demo test test-system chromium postgresql check lint types layers pytest format bench docs dist flakes test-minimum clean

help:
	@echo "make demo   train ERM and UMIX on embedded data and print the comparison"
	@echo "make test   format, lint, types, layers and the tests that need nothing but Python: about four minutes"
	@echo "make test-system  the other tests: processes, signals, Ray, a browser, full disks, optional libraries, the documentation"
	@echo "make check  the inner loop, under a minute: lint, types, layers and a few tests of every package"
	@echo "make bench  measure speed and quality; rewrites benchmarks/results/*.json"
	@echo "make docs   build the documentation into site/"
	@echo "make dist   build the wheel and the sdist into dist/ and try them in an empty environment"
	@echo "make flakes  run the tests again and again on a busy machine; rewrites benchmarks/results/flakes.json"
	@echo "make test-minimum  the tests of make test with the oldest versions that pyproject.toml allows"
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

# Types are checked beside the tests: mypy uses one core, and most of the first minute.
test: lint layers
	@$(MAKE) --no-print-directory -j2 types pytest

# Libraries that only system tests need; xgboost-cpu is XGBoost without its gigabytes for GPUs.
$(READY_SYSTEM): $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt catboost xgboost-cpu 'psycopg[binary]'
	@touch $@

test-system: $(READY_SYSTEM) chromium postgresql
	$(BIN)/pytest -n logical --maxprocesses 4 -m system

# The report and the documentation are tested in a browser; where none can be installed, those tests are skipped and say so.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  { [ "$$(id -u)" -eq 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1 || \
	  echo "chromium cannot be installed: the tests of pages in a browser are skipped"

# A search in a shared database is tested with a server of its own; where none can be installed, that test is skipped and says so.
postgresql:
	@command -v postgres >/dev/null || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || \
	  { [ "$$(id -u)" -eq 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql; } >/dev/null 2>&1 || \
	  echo "PostgreSQL cannot be installed: the test of a search in its database is skipped"

# A few quick tests of every package; of the contract, that of ERM.
SLICE := $(addprefix tests/,core/test_weights.py core/test_mixing.py core/test_selection.py data/test_task.py data/test_samplers.py \
  data/rows data/texts nets/test_mlp.py nets/test_cnn.py training/test_history.py selection \
  methods/test_umix.py methods/test_group_dro.py contract identities theory/test_glm.py bench/spec/test_run_spec.py \
  bench/runs/test_execute.py bench/study/test_study.py api/test_train.py adapters/test_weighted_mixup.py adapters/sklearn/test_inputs.py \
  exports/test_state_dict.py reports/tables reports/test_comparison.py reports/page/test_headline.py commands/test_listings.py \
  commands/test_predict.py test_store.py test_registry.py test_settings.py)
check: lint types layers
	$(BIN)/pytest -q $(ORDINARY) -k "not keeps_the_contract or erm" $(SLICE)

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports

pytest: $(READY)
	$(BIN)/pytest $(ORDINARY)

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)
	$(BIN)/python benchmarks/loop.py
	$(BIN)/python benchmarks/quality.py
	$(BIN)/python benchmarks/steps.py
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

flakes: $(READY)
	$(BIN)/python benchmarks/flakes.py

# The lower bounds of pyproject.toml in an environment of their own. With pytest 9 the checks of scikit-learn 1.8 warn.
MINIMUM := .venv-minimum
test-minimum:
	rm -rf $(MINIMUM) && $(PYTHON) -m venv $(MINIMUM)
	$(MINIMUM)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-minimum.txt -e '.[hf,search,trees]' \
	  'pytest<9' fairlearn hypothesis pytest-randomly pytest-socket pytest-xdist
	$(MINIMUM)/bin/pytest -q $(ORDINARY) tests

clean:
	rm -rf $(VENV) $(MINIMUM) dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .cache site
