# `make run` and `make test` are all a newcomer needs; both install what they need first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=
BENCHES ?= storage merge landing feed history workspaces sandbox files worker platform web
BENCH_ARGS ?=

.PHONY: help setup web run test check format bench lock build clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

setup: $(VENV)/.installed web ## make .venv and install everything into it (quick when nothing changed)

$(VENV)/.installed: pyproject.toml requirements/bootstrap.lock requirements/dev.lock scripts/setup.sh
	@PYTHON="$(PYTHON)" sh scripts/setup.sh $(VENV)
	@touch $@

web: $(VENV)/.installed ## build the web workbench (quick when nothing changed)
	@$(BIN)/python scripts/build_web.py

run: setup ## start the server with its embedded database; DATA=folder PORT=number
	@$(BIN)/contextbase up $(if $(DATA),--data "$(DATA)") $(if $(PORT),--port "$(PORT)")

test: setup ## install what the tests need and run them all; PYTEST_ARGS=... to pick
	@sh scripts/system-packages.sh
	@$(BIN)/python scripts/build_web.py --packages
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

check: setup ## lint, types, import contracts, names, generated code, docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/generate_blocking_sdk.py --check
	$(BIN)/python scripts/check_names.py
	$(BIN)/python scripts/generate_web_client.py --check
	$(BIN)/python scripts/check_docs.py

format: setup ## let ruff rewrite what it can, and generate the blocking SDK and the web client
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python scripts/generate_blocking_sdk.py
	$(BIN)/python scripts/generate_web_client.py

bench: setup ## run the benchmarks, one after the other; BENCH_ARGS="--json"
	@for name in $(BENCHES); do $(BIN)/python -m bench.$$name $(BENCH_ARGS) || exit 1; done

lock: setup ## resolve the dependencies again into requirements/*.lock
	sh scripts/lock.sh $(BIN)/uv

build: setup ## wheel and sdist into dist/
	$(BIN)/python -m build --no-isolation

clean: ## remove what was built; data folders stay
	rm -rf $(VENV) web/node_modules src/contextbase/interfaces/workbench/static dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
