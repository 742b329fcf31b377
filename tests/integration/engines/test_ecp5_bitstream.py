"""A bitstream for an ECP5, by the tools that wheels of YoWASP bring."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import flowos as fo
from flowos.drivers import read_bitstream
from tests.moody import moody

TOOLS = ("nextpnr-ecp5", "ecppack")


def installed(name: str) -> bool:
    beside = Path(sys.executable).with_name(f"yowasp-{name}")
    return bool(shutil.which(name) or shutil.which(f"yowasp-{name}") or beside.is_file())


@pytest.mark.slow
@pytest.mark.skipif(
    not all(map(installed, TOOLS)),
    reason="no nextpnr-ecp5: not in Debian 12; pip install 'flowos-hpc[fpga]' brings it",
)
def test_a_bitstream_is_for_the_ecp5_of_its_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two minutes, nearly all of them in nextpnr."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    task: Any = moody(board="ulx3s-25f")
    file = fo.bitstream(task)
    made = read_bitstream(file.read_bytes(), str(file))
    assert (made.form, made.part) == ("ecp5", "LFE5U-25")
