"""What the programs that build images print: shown as progress, bounded, and shown safely."""

from pathlib import Path

import pytest

from flowos.model import EnvironmentRefused, Progress
from flowos.operations._images._build import _check_built
from flowos.operations._images._tools import Ran, call_watched


def watched(script: str, scratch: Path) -> tuple[Ran, list[str]]:
    """How it ended, and the details of its progress."""
    seen: list[Progress] = []
    ran = call_watched(("sh", "-c", script), seen.append, "building", scratch=scratch)
    return ran, [progress.detail for progress in seen]


def test_of_long_output_only_the_beginning_and_the_end_are_held(tmp_path: Path) -> None:
    script = "echo first; head -c 30000000 /dev/zero; echo; seq 3000000; echo last"
    ran, _ = watched(script, tmp_path)
    assert ran.stdout.startswith("first\n")
    assert ran.stdout.endswith("\n3000000\nlast\n")
    assert "bytes left out here" in ran.stdout
    assert len(ran.stdout) < 2_000_000


@pytest.mark.parametrize("stream", [1, 2])
def test_progress_is_the_step_that_the_builder_names(stream: int, tmp_path: Path) -> None:
    (tmp_path / "some").write_bytes(bytes(5000))
    script = f"""
    exec >&{stream}
    echo 'STEP 1/2: FROM x'; printf 'STEP 2/2: RUN'; sleep 1; echo ' make all'
    seq 500000; echo 'no STEP 7/7: at all'; sleep 1.2
    """
    _, details = watched(script, tmp_path)
    assert details[-1] == "STEP 2/2: RUN make all"


def test_without_steps_progress_is_the_size_of_what_was_written(tmp_path: Path) -> None:
    (tmp_path / "some").write_bytes(bytes(5000))
    assert watched("sleep 0.1", tmp_path)[1][-1] == "5.00 kB"


def test_the_last_lines_of_a_failed_build_have_no_control_characters() -> None:
    ran = Ran(code=1, stdout="\x1b[31m\x1b]0;owned\x07red\n", stderr="plain\twords\n")
    with pytest.raises(EnvironmentRefused) as refused:
        _check_built(ran, Path("/x/Dockerfile"))
    assert str(refused.value).splitlines()[1:] == ["  | ?[31m?]0;owned?red", "  | plain?words"]
