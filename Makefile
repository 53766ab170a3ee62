# One command per intention. Each installs what it needs into .venv first, and .venv/running and
# .venv/installed are newer than the settings once that is complete.
PYTHON ?= python3
BIN := .venv/bin
# Tests of a file run in one process, which builds what they share once.
SPREAD = -n 2 --dist loadfile --no-loadscope-reorder
# Small tensors are quickest in one thread, and tests with two share the cores: none spins.
THREADS = OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE
INSTALL = $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e

.PHONY: train test check slow golden arithmetic extensions faults coverage docs format benchmark release clean

train: .venv/running
	$(BIN)/coach -p Mujoco_PPO

test: .venv/installed
	$(THREADS) $(BIN)/python -m pytest $(SPREAD) -m "not slow"

slow: .venv/installed
	$(BIN)/python -m pytest -m slow

golden: .venv/installed
	$(THREADS) $(BIN)/python -m pytest -n 2 -m golden tests/golden

# KINDS: some of those that `tests/arithmetic.py --list` prints; all unless given.
arithmetic: .venv/installed
	$(THREADS) $(BIN)/python tests/arithmetic.py $(KINDS)

# NAMES: extensions that are deleted together; unless given each alone, then all together. --tests:
# all but `testing` are deleted, and the core's tests are run.
extensions: .venv/installed
	$(THREADS) $(BIN)/python tests/extensions/deletion.py $(NAMES)

check: .venv/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(BIN)/python -m compileall -q coach_rl environments filters presets benchmarks tests
	$(BIN)/python .ci/check_wheel.py

faults: .venv/installed
	$(THREADS) PYTHONPATH=tests/golden $(BIN)/python tests/faults/killed_runs.py --write
	$(BIN)/python tests/faults/promises.py --write

coverage: .venv/installed
	rm -f .coverage .coverage.*
	$(THREADS) COACH_TEST_SEED=every $(BIN)/coverage run -m pytest $(SPREAD) -m "not slow"
	$(BIN)/coverage combine -q
	$(BIN)/coverage report

docs: .venv/installed
	$(INSTALL) ".[docs]"
	$(BIN)/mkdocs build --strict

format: .venv/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

benchmark: .venv/installed
	$(INSTALL) ".[benchmark]"

# TAG: the release's, such as v0.3.0.
release: check
	COACH_RELEASE=$(TAG) $(BIN)/python -m pytest tests/test_publishing.py
	$(BIN)/python .ci/publishable.py $(TAG)

clean:
	rm -rf .venv build dist site .mypy_cache .ruff_cache .pytest_cache

# What the commands of README.md need.
.venv/running: pyproject.toml constraints.txt | $(BIN)/pip
	$(INSTALL) ".[video,plot,sweep,export]"
	touch $@

# That, and what tests and checks need.
.venv/installed: pyproject.toml constraints.txt | $(BIN)/pip
	$(INSTALL) ".[dev]"
	touch .venv/running $@

$(BIN)/pip:
	$(PYTHON) -m venv .venv
