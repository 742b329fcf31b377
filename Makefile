# The one entry. `make measure` and `make test` do all the set-up, on a fresh machine too.
PY := .venv/bin
PURE := model plan drivers probes report
C_FILES = $(shell git ls-files 'src/*.c' 'src/*.cpp' 'src/*.h' 'bind/*.cpp' 'bind/*.h' 'tests/native/*.h' 'benchmarks/*.c' 'tests/native/*.c' 'tests/native/*.cpp' 'benchmarks/*.cpp' 'benchmarks/*.h')
# Tests at a time: most of what those with real programs do is to wait for what they started.
TOGETHER := -n 4 --dist worksteal
UNITS_TOGETHER := -n 2 --dist worksteal
# What tools/setup unpacked because installing it would switch or start something.
export PATH := $(PATH):$(CURDIR)/.deps/debian/usr/bin:$(CURDIR)/.deps/debian/bin
# Set in many containers: every child would compile what it imports, PyTorch too, at each start.
unexport PYTHONDONTWRITEBYTECODE
# What mypy has checked, by content: of all checkouts.
export MYPY_CACHE_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/flowos/mypy

# OpenBLAS's idle threads look for work during 2^26 cycles: each process of the tests that imports NumPy
# took 30 ms of another core. Only tests: what is measured keeps what its user has.
test test-environments test-cluster: export OPENBLAS_THREAD_TIMEOUT := 4

.PHONY: measure test test-environments test-cluster check test-native mutants bench docs recording wheel image release clean

measure:  ## what can this machine do? (ARGS="--quick" and so on)
	@tools/setup measure
	@$(PY)/flowos measure $(ARGS)

test:  ## everything that must hold; the pure rooms to their last branch (ARGS="-k name")
ifdef ARGS
	@tools/setup test
	$(PY)/pytest $(ARGS)
else
	@tools/setup check
	$(PY)/pytest $(UNITS_TOGETHER) $(foreach room,$(PURE),--cov=flowos.$(room)) --cov-branch \
	  --cov-report=term-missing:skip-covered --cov-fail-under=100 tests/unit tests/contract
	@tools/setup test
	$(PY)/pytest $(TOGETHER) tests/integration
endif

test-environments:  ## images and runtimes for real, as an ordinary user (ARGS="-k name")
	@tools/setup test
	$(PY)/pytest -p no:cacheprovider tests/environments $(ARGS)

test-cluster:  ## a Slurm and a Grid Engine for real, as an ordinary user (ARGS="-k name")
	@tools/setup test
	$(PY)/pytest -p no:cacheprovider -n 3 --dist loadfile tests/cluster $(ARGS)

check:  ## style, types, rooms, sizes, includes
	@tools/setup check
	$(PY)/ruff check .
	$(PY)/ruff format --check .
	$(PY)/mypy
	$(PY)/basedpyright
	$(PY)/lint-imports
	$(PY)/python tools/circles.py
	$(PY)/python tools/names.py
	$(PY)/python tools/words.py
	$(PY)/typos
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

docs:  ## the site, into build/docs; open build/docs/index.html
	@tools/setup check
	$(PY)/pip install --quiet --group docs
	$(PY)/sphinx-build -W --keep-going -q -b html docs build/docs
	@echo written: build/docs/index.html

recording:  ## a minute at a terminal, as docs/recording.cast and .svg
	@tools/setup measure
	here=$$PWD work=/tmp/flowos && mkdir "$$work" && trap 'rm -rf "$$work"' EXIT && cp examples/decorated.py examples/sweep.py "$$work" && \
	cd "$$work" && "$$here/$(PY)/python" "$$here/tools/recording.py" "$$here/docs/recording" \
	  'cat decorated.py' 'flowos run decorated.py number=77' \
	  'timeout -s KILL 4 python sweep.py .; python sweep.py .' \
	  'flowos measure --minutes 0.1 -- python decorated.py' 'flowos solve poisson:40x40x40'

wheel:  ## sdist and wheels, into dist, each tried in an empty environment
	@tools/setup release
	tools/wheels dist
	tools/pythons | while read -r _ python; do tools/smoke "$$python" dist || exit 1; done

image:  ## FlowOS as an image, made by FlowOS from the wheel of dist; as an ordinary user
	tools/image dist

release:  ## VERSION=x.y.z: version, changelog, tag, sdist, wheels, checksums, SBOM; DRY=1 only says what
	@$(if $(DRY),,tools/setup release)
	python3 tools/release.py $(if $(DRY),--dry-run) -- "$$VERSION"

clean:
	rm -rf build dist .venv .mypy_cache .pytest_cache .ruff_cache
