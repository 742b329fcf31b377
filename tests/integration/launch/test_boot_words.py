"""What flowos-init adds to the words of QEMU, with a shell in its place that prints them."""

import os
import platform
import re
import subprocess
from pathlib import Path

import pytest

from flowos.engine import here
from tests.waiting import PATIENCE_SECONDS


def parameters(folder: Path, *options: str) -> str:
    """Of the kernel, where `quiet` was asked for."""
    folder.mkdir()
    os.mkfifo(folder / "lifeline")
    supervisor = os.open(folder / "lifeline", os.O_RDWR)
    init = here()._session.init_program()
    machine = ("/bin/sh", "-c", 'echo "$2"', "sh", "-append", "quiet")
    done = subprocess.run(
        (init, "--boot", *options, "--", *machine, "--", init, folder, "--", "true"),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    os.close(supervisor)
    assert (folder / "status.0").read_text().startswith("error died 0\n")
    return done.stderr


@pytest.mark.skipif(platform.machine() != "x86_64", reason="no time stamp counter of x86")
def test_a_guest_with_the_counter_of_this_machine_is_given_its_rate(tmp_path: Path) -> None:
    seen = [parameters(tmp_path / name, "30", "--counter") for name in ("one", "two")]
    rates = [re.fullmatch(r"tsc_early_khz=([0-9]+) quiet\n", each) for each in seen]
    one, two = (int(rate[1]) for rate in rates if rate)
    assert one == pytest.approx(two, rel=1e-3)


def test_one_with_another_clock_is_given_none(tmp_path: Path) -> None:
    assert parameters(tmp_path / "one", "30") == "quiet\n"
