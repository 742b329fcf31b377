"""Unusual limits outside are those inside: bare, and in every runtime."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Place, static_busybox

pytestmark = pytest.mark.usefixtures("nothing_is_left")

BUSYBOX = static_busybox()


def test_a_mask_limits_and_priority_that_are_unusual_are_the_callers(
    place: Place, tmp_path: Path
) -> None:
    """Podman, for one, has a mask of its own and raises limits to what may be had at most."""
    env = [] if place.form is None else ["--env", f"{place.requested.image.source}@{place.runtime}"]  # type: ignore[union-attr]
    inside = (
        "umask; for kind in Sn Hn Sc Ss Sl Su Hu; do ulimit -$kind; done;"
        "cut -d' ' -f19 /proc/self/stat;"
        "touch made; mkdir folder; stat -c %a made folder"
    )
    flowos = str(Path(sys.executable).with_name("flowos"))
    shell = BUSYBOX if place.form is None else "/bin/busybox"
    outside = (
        "umask 0027; ulimit -Sn 512; ulimit -Hn 1024; ulimit -Sc 0; ulimit -Ss 4096; ulimit -Sl 64;"
        'ulimit -Su 4000; ulimit -Hu 5000; exec nice -n 3 "$@"'
    )
    command = (flowos, "exec", *env, "--", shell, "sh", "-c", inside)
    done = subprocess.run(
        [BUSYBOX, "sh", "-c", outside, "sh", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    seen = done.stdout.split()
    assert seen == [
        *("0027", "512", "1024", "0", "4096", "64", "4000", "5000"),
        *(str(min(os.nice(0) + 3, 19)), "640", "750"),
    ], done.stderr
