"""What is compiled for one processor is not taken on another one, as `-march=native` is allowed."""

from pathlib import Path
from typing import Any

import pytest

import flowos as fo
from flowos.engine.bodies import _compile

TWICE = 'extern "C" int twice(long x, long* y) { *y = 2 * x; return 0; }'


def test_a_library_is_compiled_once_for_each_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes of several kinds share a folder of the user."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    task: Any = fo.cxx(TWICE, "twice", inputs={"x": fo.int64}, outputs={"y": fo.int64})

    def entries_once_compiled() -> set[str]:
        _compile.library_of(task.body.fun.code)
        return {entry.name for entry in (tmp_path / "flowos" / "bodies").glob("*.json")}

    ours = entries_once_compiled()
    assert entries_once_compiled() == ours
    monkeypatch.setattr(_compile, "processor_lines", lambda: "model name: another one")
    assert len(entries_once_compiled() - ours) == 1
