"""Programs that are compiled ahead."""

from dataclasses import replace
from pathlib import Path

import pytest

from flowos.model import Progress
from flowos.operations._facts import facts
from flowos.operations.measure._binary_cache import BinaryCache
from flowos.probes import best_compiler, built_by


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
