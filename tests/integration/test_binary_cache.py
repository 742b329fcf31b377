"""Programs that are compiled ahead."""

from dataclasses import replace
from pathlib import Path

import pytest

from flowos.model import MeasureError, Progress
from flowos.operations._facts import facts
from flowos.operations.measure._binary_cache import BinaryCache
from flowos.probes import Build, best_compiler, built_by


def test_it_says_which_of_them_is_built_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiler = best_compiler(facts())
    assert compiler is not None
    build = built_by("nothing.c", compiler, ("-O0",))
    told: list[Progress] = []
    cache = BinaryCache(tmp_path)
    cache.build_ahead((build, replace(build, flags=("-O1",))), told.append)
    assert [each.doing for each in told] == ["building 1 of 2: nothing", "building 2 of 2: nothing"]


def test_what_could_not_be_compiled_is_not_tried_again(tmp_path: Path) -> None:
    """Of many cases each needs the program of the solver, which takes minutes."""
    cache, tries = BinaryCache(tmp_path), []

    def fail() -> None:
        tries.append("once")
        raise MeasureError("solve_mpi.cpp cannot be compiled")

    for _ in range(3):
        with pytest.raises(MeasureError, match="cannot be compiled"):
            cache.try_once("solve_mpi", fail)
    assert tries == ["once"]


def test_a_compiler_has_time_for_each_source() -> None:
    build = Build(source="a.c", also=("b.c", "c.c"), compiler="cc")
    assert build.limit_seconds == 360.0
