# Everything lives in .venv; nothing else on the machine is touched. PYTHON may name another Python >= 3.11.

VENV := .venv
BIN := $(VENV)/bin
FIND_PYTHON := for p in "$(PYTHON)" python3.11 python3.12 python3.13 python3 python; do \
	[ -n "$$p" ] && "$$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo "$$p"; exit 0; }; done; \
	echo "Python 3.11 or newer with venv is needed (on Debian: apt install python3 python3-venv)" >&2; exit 1
MODEL := qwen2.5-coder-1.5b

.PHONY: help demo test lint format model clean

help:
	@echo "make demo    fix the bundled sample repository's issue: no network, no key"
	@echo "make test    style, types and the whole test suite"
	@echo "make lint    style and types only"
	@echo "make model   install the local model $(MODEL) (1.1 GB)"
	@echo "make clean   remove .venv and what builds leave"

# The stamps say what was installed: they are made anew when pyproject.toml changes.
$(VENV)/.python:
	@$(BIN)/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	{ python=$$($(FIND_PYTHON)) && "$$python" -m venv --clear $(VENV); }
	@touch $@

$(VENV)/.run: $(VENV)/.python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.run

$(VENV)/.local: $(VENV)/.python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[local]'
	@touch $@ $(VENV)/.run

demo: $(VENV)/.run
	@$(BIN)/agent-ls demo --keep

test: lint
	$(BIN)/python -m pytest -q -n 2 --dist loadfile --max-worker-restart 0

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

model: $(VENV)/.local
	$(BIN)/agent-ls model install $(MODEL)

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache
