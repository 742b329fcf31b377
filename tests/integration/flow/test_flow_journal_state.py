"""A journal has what was computed with the program's own values, by every kind of worker."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SCRIPT = """
    import sys
    import flowos as fo
    import kept_config

    W = 2

    @fo.task
    def scaled(n: int) -> int:
        return n * kept_config.SCALE * W

    n = fo.flow_input("n", int)
    if __name__ == "__main__":
        workers, kept_config.SCALE, W = sys.argv[1], int(sys.argv[2]), 2
        with fo.slice(fo.flow_output(scaled(n)), workers=workers, journal="kept", cores=1) as s:
            print(*s.run(7), end=" ")
            W = int(sys.argv[3])
            print(*s.run(7), *s.run(8), *(note[0] for note in s.notes if "taken" in note))
"""


def printed(folder: Path, *words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "script.py", *words], cwd=folder, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kept_config.py").write_text("SCALE = 1\n")
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    return tmp_path


def test_what_a_process_keeps_is_what_a_thread_computes(folder: Path) -> None:
    assert printed(folder, "process", "10", "2") == ["140", "140", "160", "1"]
    assert printed(folder, "thread", "10", "2") == ["140", "140", "160", "3"]
    assert printed(folder, "thread", "1", "2") == ["14", "14", "16", "1"]


@pytest.mark.parametrize("workers", ["process", "thread"])
def test_a_value_that_changes_while_the_slice_is_open_spoils_no_journal(
    folder: Path, workers: str
) -> None:
    first, *_ = printed(folder, workers, "1", "30")
    assert first == "14"
    assert printed(folder, "thread", "1", "2") == ["14", "14", "16", "2"]
