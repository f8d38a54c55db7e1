# Each word does its own set-up; `make setup` builds .venv with the package in it.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo up test quick coverage browser test-cluster check fmt bench bench-cluster bench-pipelines bench-spark compat compat-transactions soak docs site dist lock clean

setup: .venv/.ready

.venv/.ready: pyproject.toml requirements.lock hatch_build.py $(wildcard src/ottla/spark/kernel/*.[ch])
	$(PYTHON) tools/setup_venv.py
	@touch $@

demo: setup
	$(BIN)/python -m examples.orders.demo --png build/demo.png

up: setup
	$(BIN)/ottla up

test: setup
	$(BIN)/python tools/run_tests.py

quick: check
	$(BIN)/python tools/run_tests.py unit golden

# The console in a real browser: Playwright comes from the index, chromium from the system (`apt-get install chromium`),
# axe-core, which looks for what keeps people out, from npm if that is there.
AXE := build/browser/node_modules/axe-core/axe.min.js
browser: setup
	test -e $(AXE) || ! command -v npm >/dev/null || \
		npm install --silent --no-save --no-audit --no-fund --ignore-scripts --prefix build/browser axe-core@4.14.0
	$(BIN)/python -c "import playwright" 2>/dev/null || $(BIN)/python -m pip install --quiet "playwright>=1.49"
	$(BIN)/python -m pytest tests/browser $(ARGS)

coverage: setup
	$(BIN)/python tools/measure_coverage.py

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

bench-pipelines: setup
	$(BIN)/python -m benchmarks.pipelines $(ARGS)

bench-spark: setup
	$(BIN)/python -m benchmarks.spark $(ARGS)

compat: setup
	$(BIN)/python -m pytest compat
	OTTLA_TEST_BROKERS=3 $(BIN)/python -m pytest compat/test_java_client.py compat/test_streams.py compat/test_connect.py

# Of compat, the transactions on three brokers; docs/compatibility.md says how to ask for more of them.
compat-transactions: setup
	$(BIN)/python -m pytest compat/test_java_transactions.py compat/test_franz_go.py

soak: setup
	OTTLA_SOAK=1 $(BIN)/pytest --hostile-inputs 200000 tests/unit tests/security tests/monitoring tests/reliability tests/fuzz tests/transactions tests/cluster tests/registry tests/simulation tests/spark_reliability tests/spark/test_write_crashes.py tests/spark/test_formats.py tests/pipelines/steps

docs: setup
	$(BIN)/python tools/generate_settings_docs.py
	$(BIN)/python tools/generate_api_docs.py
	$(BIN)/python tools/generate_connector_docs.py
	$(BIN)/python tools/generate_metrics_docs.py
	$(BIN)/python tools/generate_monitor_metrics_docs.py

site:
	$(PYTHON) tools/build_site.py

dist: setup
	rm -rf dist  # both wheels are built from the sdist, away from the kernel that this checkout uses
	$(BIN)/python -m build --no-isolation
	OTTLA_PURE_WHEEL=1 $(BIN)/python -m build --no-isolation
	$(BIN)/auditwheel show dist/*linux*.whl

lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --group dev --extra spark pyproject.toml -o requirements.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --group docs -o requirements-docs.lock

clean:
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis build dist
