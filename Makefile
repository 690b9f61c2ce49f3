# What a newcomer types. Everything else is `memagent --help`.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test lowest lint types generate lock conformance bench chaos clean help

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

demo: $(VENV)/.demo ## a chat that is remembered, and a week of forgetting, on real parts
	@$(BIN)/memagent demo

test: $(VENV)/.dev ## the whole suite
	@$(BIN)/python -m pytest -n auto --dist loadgroup

lowest: $(VENV)/bin/python ## the suite again, on the lowest versions that pyproject.toml allows
	@$(PYTHON) -m venv build/lowest
	@$(BIN)/python -m uv --version >/dev/null 2>&1 || $(BIN)/python -m pip install -q --disable-pip-version-check uv
	@$(BIN)/python -m uv pip install -q --python build/lowest/bin/python --resolution lowest-direct -e '.[all,lancedb]'
	@$(BIN)/python -m uv pip install -q --python build/lowest/bin/python --group dev
	@build/lowest/bin/python -m pytest -q -n auto --dist loadgroup -p no:cacheprovider

lint: $(VENV)/.dev ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

generate: $(VENV)/.dev ## write schemas/, docs/rules.md and the README's table anew
	$(BIN)/memagent schema --write
	$(BIN)/python -m memagent.config.rules > docs/rules.md

lock: $(VENV)/bin/python ## resolve the exact tested sets anew (needs uv)
	for set in embedded all dev; do sh requirements/resolve $$set $(VENV); done

conformance: $(VENV)/.dev ## memagent's verdict beside LibreChat's own schema
	$(BIN)/python benchmarks/conformance.py

bench: $(VENV)/.dev ## every benchmark
	$(BIN)/python -m benchmarks

chaos: $(VENV)/.dev ## everything that can go wrong under 10,000 turns, then count (about ten minutes)
	$(BIN)/python -m benchmarks.chaos

clean: ## forget the virtual environment and the caches
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "memagent needs Python 3.11 or newer: make PYTHON=python3.12 …")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml requirements/embedded.txt
	@echo "installing memagent into $(VENV) (once)…"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/embedded.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml requirements/dev.txt
	@echo "installing memagent and its tests into $(VENV) (once)…"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .
	@touch $@ $(VENV)/.demo
