# Every target sets itself up on a machine that has only Python 3.11 or newer, and make.
#
#   make install   everything, for development, in .venv
#   make demo      a small game, solved and checked (installs only what that needs)
#   make test      all tests, the slow ones too
#   make check     formatting, lint, types
#   make bench     how long the solvers take
#   make clean     remove caches and what the demo made; distclean removes the environments too

PYTHON ?= python3
# How many test processes: a number, or auto for one per core.
WORKERS ?= auto

VENV := .venv
DEMO_VENV := .venv-demo
# A checkout that already has everything installed needs no second environment for the demo.
DEMO := $(if $(wildcard $(VENV)/.installed),$(VENV),$(DEMO_VENV))

PIP_INSTALL := -m pip install --quiet --disable-pip-version-check -c constraints.txt

# One thread per test process: the processes are the parallelism.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1
# Flower and Ray are not to phone home.
OFFLINE := FLWR_TELEMETRY_ENABLED=0 FLWR_DISABLE_UPDATE_CHECK=1 RAY_USAGE_STATS_ENABLED=0

.DELETE_ON_ERROR:
.PHONY: help install demo test check bench clean distclean

help:
	@sed -n 's/^#   //p' Makefile

# $(call new_venv,DIRECTORY) makes a virtual environment unless a working one is there.
define new_venv
@$(1)/bin/python -m pip --version >/dev/null 2>&1 || { \
  $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
  && $(PYTHON) -m venv --clear $(1) >/dev/null 2>&1; \
} || { \
  rm -rf $(1); \
  echo "'$(PYTHON) -m venv' does not work here: install Python 3.11 or newer with its venv module" \
    "(on Debian: python3-venv), or name another Python with 'make PYTHON=...'." >&2; \
  exit 1; \
}
endef

$(VENV)/.installed: pyproject.toml constraints.txt
	$(call new_venv,$(VENV))
	@echo "installing everything into $(VENV) (a few minutes the first time)"
	@$(VENV)/bin/python $(PIP_INSTALL) -e '.[all,dev]'
	@touch $@

$(DEMO_VENV)/.installed: pyproject.toml constraints.txt
	$(call new_venv,$(DEMO_VENV))
	@echo "installing what the demo needs into $(DEMO_VENV)"
	@$(DEMO_VENV)/bin/python $(PIP_INSTALL) -e '.[report]'
	@touch $@

install: $(VENV)/.installed

# The last command asks about equal shares. Exit code 1 is its "no", which is an answer, not a fault.
demo: $(DEMO)/.installed
	$(DEMO)/bin/fedaccord catalog flower --parameter petals=4 > demo/flower.json
	$(DEMO)/bin/fedaccord solve demo/flower.json
	$(DEMO)/bin/fedaccord check demo/flower.json demo/equal.json || test $$? -eq 1

test: $(VENV)/.installed
	$(ONE_THREAD) $(OFFLINE) $(VENV)/bin/python -m pytest -n $(WORKERS)

check: $(VENV)/.installed
	$(VENV)/bin/python -m ruff format --check --quiet .
	$(VENV)/bin/python -m ruff check --quiet .
	$(VENV)/bin/python -m mypy

bench: $(VENV)/.installed
	$(ONE_THREAD) $(VENV)/bin/python benchmarks/games.py

clean:
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist demo/flower.json
	find . -path './.venv*' -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV) $(DEMO_VENV)
