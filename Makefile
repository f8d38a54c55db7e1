# Each word does its own set-up; `make setup` builds .venv with the package in it.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo up test test-cluster check fmt bench bench-cluster bench-spark compat soak docs lock clean

setup: .venv/.ready

.venv/.ready: pyproject.toml requirements.lock hatch_build.py src/ottla/spark/kernel/kernel.c
	$(PYTHON) tools/setup_venv.py
	@touch $@

demo: setup
	$(BIN)/python -m examples.orders.demo --png build/demo.png

up: setup
	$(BIN)/ottla up

test: setup
	$(BIN)/python tools/run_tests.py

test-cluster: setup
	OTTLA_TEST_BROKERS=3 $(BIN)/pytest tests/clients tests/cli tests/transactions tests/server tests/reliability tests/spark tests/pipelines tests/examples

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fmt: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup
	$(BIN)/python -m benchmarks

bench-cluster: setup
	$(BIN)/python -m benchmarks.cluster $(ARGS)

bench-spark: setup
	$(BIN)/python -m benchmarks.spark $(ARGS)

compat: setup
	$(BIN)/python -m pytest compat
	OTTLA_TEST_BROKERS=3 $(BIN)/python -m pytest compat/test_java_client.py

soak: setup
	OTTLA_SOAK=1 $(BIN)/pytest tests/reliability tests/fuzz tests/transactions tests/cluster tests/spark_reliability

docs: setup
	$(BIN)/python tools/generate_settings_docs.py
	$(BIN)/python tools/generate_api_docs.py
	$(BIN)/python tools/generate_connector_docs.py

lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --group dev --extra spark pyproject.toml -o requirements.lock

clean:
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis build dist
