# The one entry. `make measure` and `make test` do all the set-up, on a fresh machine too.
PY := .venv/bin
PURE := model plan drivers probes report
C_FILES = $(shell git ls-files 'src/*.c' 'src/*.cpp' 'src/*.h' 'bind/*.cpp' 'bind/*.h' 'tests/native/*.h' 'benchmarks/*.c' 'tests/native/*.c' 'tests/native/*.cpp' 'benchmarks/*.cpp' 'benchmarks/*.h')
# Tests at a time: most of what they do is to wait for what they started.
TOGETHER := -n 3 --dist worksteal
# What tools/setup unpacked because installing it would switch or start something.
export PATH := $(PATH):$(CURDIR)/.deps/debian/usr/bin:$(CURDIR)/.deps/debian/bin
# What an image of a container says: each process of the tests would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE
# What mypy has checked, by content: of all checkouts.
export MYPY_CACHE_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/flowos/mypy

.PHONY: measure test test-environments test-cluster check test-native mutants bench clean

measure:  ## what can this machine do? (ARGS="--quick" and so on)
	@tools/setup measure
	@$(PY)/flowos measure $(ARGS)

test:  ## everything that must hold; the pure rooms to their last branch (ARGS="-k name")
ifdef ARGS
	@tools/setup test
	$(PY)/pytest $(ARGS)
else
	@tools/setup check
	$(PY)/pytest $(TOGETHER) $(foreach room,$(PURE),--cov=flowos.$(room)) --cov-branch \
	  --cov-report=term-missing:skip-covered --cov-fail-under=100 tests/unit tests/contract
	@tools/setup test
	$(PY)/pytest $(TOGETHER) tests/integration
endif

test-environments:  ## images and runtimes for real, as an ordinary user (ARGS="-k name")
	@tools/setup check
	$(PY)/pytest -p no:cacheprovider tests/environments $(ARGS)

test-cluster:  ## a Slurm and a Grid Engine for real, as an ordinary user (ARGS="-k name")
	@tools/setup test
	$(PY)/pytest -p no:cacheprovider -n 2 --dist loadfile tests/cluster $(ARGS)

check:  ## style, types, rooms, sizes, includes
	@tools/setup check
	$(PY)/ruff check .
	$(PY)/ruff format --check .
	$(PY)/mypy
	$(PY)/lint-imports
	$(PY)/python tools/circles.py
	$(PY)/python tools/names.py
	$(PY)/python tools/words.py
	$(PY)/clang-format --dry-run --Werror $(C_FILES)
	$(PY)/python tools/tidy.py
	$(PY)/python tools/sizes.py
	$(PY)/python tools/includes.py

test-native:  ## the C and C++ tests under ASan+UBSan, threaded ones under TSan
	@tools/setup check
	tools/test-native

mutants:  ## changes of the pure rooms that no test notices (ARGS="--seconds 600 flowos.plan._trust")
	@tools/setup check
	@$(PY)/pip install --quiet --group mutants
	$(PY)/python tools/mutants.py $(ARGS)

bench:  ## every claim of the README (long; on a quiet machine)
	@tools/setup bench
	$(PY)/python benchmarks/all.py $(ARGS)

clean:
	rm -rf build dist .venv .mypy_cache .pytest_cache .ruff_cache
