# Every target sets itself up on a machine that has only Python 3.11 or newer, and make.
#
#   make install   everything, for development, in .venv
#   make demo      four agents with digits: a plan, training with it, an audit, and a page of all that
#   make test      all tests, the slow ones too; installs Chromium, which opens the report pages
#   make soak      all commands under faults: kills, full disks, broken files; prints counts
#   make check     formatting, lint, types
#   make docs      the documentation as a site in build/site, with search; open its index.html
#   make bench     how long the solvers and a round of training take; installs pfl to compare with
#   make clean     remove caches and what the demo made; distclean removes the environments too

PYTHON ?= python3
# How many test processes: a number, or auto for one per core.
WORKERS ?= auto

VENV := .venv
DEMO_VENV := .venv-demo
# A checkout that already has everything installed needs no second environment.
DEMO := $(if $(wildcard $(VENV)/.installed),$(VENV),$(DEMO_VENV))
DOCS_VENV := .venv-docs
DOCS := $(if $(wildcard $(VENV)/.installed),$(VENV),$(DOCS_VENV))

PIP_INSTALL := -m pip install --quiet --disable-pip-version-check -c constraints.txt

# One thread per test process: the processes are the parallelism.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1
# Flower and Ray are not to phone home.
OFFLINE := FLWR_TELEMETRY_ENABLED=0 FLWR_DISABLE_UPDATE_CHECK=1 RAY_USAGE_STATS_ENABLED=0

.DELETE_ON_ERROR:
.PHONY: help install demo browser test soak check docs bench clean distclean

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

# Installing compiles the native block.
NATIVE := hatch_build.py $(wildcard src/fedaccord/federation/fused/*.[ch]pp)

$(VENV)/.installed: pyproject.toml constraints.txt $(NATIVE)
	@echo "installing everything into $(VENV), a few minutes the first time"
	$(call new_venv,$(VENV))
	@$(VENV)/bin/python $(PIP_INSTALL) -e '.[all,dev,docs]'
	@touch $@

$(DEMO_VENV)/.installed: pyproject.toml constraints.txt $(NATIVE)
	@echo "installing what the demo needs into $(DEMO_VENV), a few minutes the first time"
	$(call new_venv,$(DEMO_VENV))
	@$(DEMO_VENV)/bin/python $(PIP_INSTALL) -e '.[train,explore]'
	@touch $@

$(DOCS_VENV)/.installed: pyproject.toml constraints.txt $(NATIVE)
	@echo "installing what the site needs into $(DOCS_VENV), a minute the first time"
	$(call new_venv,$(DOCS_VENV))
	@$(DOCS_VENV)/bin/python $(PIP_INSTALL) -e '.[docs]'
	@touch $@

install: $(VENV)/.installed

demo: $(DEMO)/.installed
	@$(ONE_THREAD) $(DEMO)/bin/python demo/demo.py

# Where it cannot be installed, the tests that need it are skipped and say so.
CHROMIUM := chromium chromium-driver fonts-dejavu-core
APT := apt-get -qq -y --no-install-recommends -o Dpkg::Use-Pty=0
browser:
	@{ command -v chromium && command -v chromedriver; } >/dev/null || { \
	  as_root=; test "$$(id -u)" = 0 || as_root="sudo -n"; \
	  command -v apt-get >/dev/null && $$as_root true 2>/dev/null \
	  && echo "installing Chromium, in which the tests open the report pages" \
	  && export DEBIAN_FRONTEND=noninteractive \
	  && { $$as_root $(APT) install $(CHROMIUM) >/dev/null 2>&1 \
	    || { $$as_root $(APT) update && $$as_root $(APT) install $(CHROMIUM); } >/dev/null; }; \
	} || echo "To test the report pages too, install Chromium and its driver" \
	  "(on Debian: sudo apt-get install chromium chromium-driver)." >&2

test: $(VENV)/.installed browser
	$(ONE_THREAD) $(OFFLINE) $(VENV)/bin/python -m pytest -n $(WORKERS)

soak: $(VENV)/.installed
	$(ONE_THREAD) $(OFFLINE) $(VENV)/bin/python tests/faults/soak.py

check: $(VENV)/.installed
	$(VENV)/bin/python -m ruff format --check --quiet .
	$(VENV)/bin/python -m ruff check --quiet .
	$(VENV)/bin/python -m mypy

# Its theme announces at every start that its support ends in May 2027; CONTRIBUTING.md says so once.
# With --quiet, warnings would not be counted, and strict mode would pass them.
docs: $(DOCS)/.installed
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/python -m mkdocs build --strict
	@echo "built the site: open build/site/index.html"

bench: $(VENV)/.installed browser
	$(ONE_THREAD) $(VENV)/bin/python benchmarks/games.py
	$(ONE_THREAD) $(VENV)/bin/python benchmarks/money.py
	$(ONE_THREAD) $(VENV)/bin/python benchmarks/explorer.py
	$(ONE_THREAD) $(VENV)/bin/python benchmarks/training.py
	$(ONE_THREAD) $(VENV)/bin/python benchmarks/roofline.py
	$(ONE_THREAD) $(OFFLINE) $(VENV)/bin/python benchmarks/engines.py

clean:
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist demo/game.json demo/plan.csv demo/report.html
	find . -path './.venv*' -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV) $(DEMO_VENV) $(DOCS_VENV) .venv-pfl .venv-pdlp
