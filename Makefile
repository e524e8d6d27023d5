# Everything a contributor types; `make` alone lists it. No activation needed: recipes use .venv.
#
#   PYTHON=...   interpreter to build .venv from (default: python3.11, then python3; 3.11 or newer)
#   ARGS=...     passed on by demo, test, test-slow and bench: `make test ARGS="tests/envs -x"`
#   PIP_ARGS=... passed on to pip, for example
#                PIP_ARGS="--extra-index-url https://download.pytorch.org/whl/cpu"
#                takes the CPU build of torch, which on Linux spares gigabytes of CUDA libraries

VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
PIP := $(PY) -m pip --disable-pip-version-check --quiet
TORCH := torch==2.13.0
PYTHON ?=
ARGS ?=
PIP_ARGS ?=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-slow check bench clean

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile
	@echo
	@awk '/^#   / {sub(/^#   /, "  "); print} /^$$/ {exit}' Makefile

demo: $(STAMP) ## the main job: fine-tune a victim against its adversaries, measure before and after
	$(PY) -m aprl.train with finetune_defence $(ARGS)

test: $(STAMP) ## all tests but the slow ones
	$(PY) -m pytest $(ARGS)

test-slow: $(STAMP) ## the tests that take longer than 20 s
	$(PY) -m pytest -m slow $(ARGS)

check: $(STAMP) ## lint, formatting and types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

bench: $(STAMP) ## speed of the main job beside what a user would use instead
	$(PY) benchmarks/main_job.py $(ARGS)

clean: ## remove caches and build products; runs, data and .venv stay
	rm -rf build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .coverage coverage.xml
	find . \( -name .git -o -name $(VENV) \) -prune \
		-o -type d -name __pycache__ -prune -exec rm -rf {} +

# The stamp is written last: a set-up that is interrupted or fails is taken up again by the next
# make. An environment that works is kept and updated; one that does not is made anew.
$(STAMP): pyproject.toml constraints.txt
	@rm -f $@
	@if $(PY) -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		echo "Set-up: updating $(VENV)"; \
	else \
		python="$(PYTHON)"; \
		for candidate in python3.11 python3; do \
			[ -z "$$python" ] || break; \
			if $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
			then python=$$candidate; fi; \
		done; \
		if [ -z "$$python" ]; then \
			echo "aprl needs Python 3.11 or newer; neither python3.11 nor python3 is one." \
				"Install it, or name one: make PYTHON=/path/to/python" >&2; exit 1; \
		fi; \
		if ! "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "aprl needs Python 3.11 or newer; PYTHON=$$python is" \
				"$$("$$python" --version 2>/dev/null || echo no Python)" >&2; exit 1; \
		fi; \
		echo "Set-up: making $(VENV) with $$("$$python" --version) ($$python)"; \
		"$$python" -m venv --clear $(VENV); \
	fi
	@echo "Set-up: installing $(TORCH), the largest download"
	@$(PIP) install $(PIP_ARGS) -c constraints.txt "$(TORCH)"
	@echo "Set-up: installing aprl and its other dependencies (a few minutes the first time)"
	@$(PIP) install $(PIP_ARGS) -c constraints.txt -e ".[dev]"
	@touch $@
	@echo "Set-up: done"
