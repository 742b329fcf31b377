"""Where results cannot be kept or written: nothing is lost in silence, nothing is left by half."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Flowos = Callable[..., subprocess.CompletedProcess[str]]
SHORTLY = ("measure", "--quick", "--only", "clock", "--minutes", "0.02")


@pytest.fixture
def on_30_megabytes(
    tmp_path: Path, variables: dict[str, str], looked_flowos: list[str]
) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Runs a script in a file system of 30 MB; `flowos` in it is ours, its data lie elsewhere.

    `looked_flowos` does not look at this machine, nor at the storage that is measured.
    """
    small = tmp_path / "small"
    small.mkdir()

    def run(script: str) -> subprocess.CompletedProcess[str]:
        called = f'flowos() {{ "{sys.executable}" -m flowos "$@"; }}\n'
        called += f'looked_flowos() {{ {shlex.join(looked_flowos)} "$@"; }}\n'
        view = ("--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc")
        room = ("--size", str(30 << 20), "--tmpfs", str(small), "--chdir", str(small))
        return subprocess.run(
            ["bwrap", *view, *room, "bash", "-c", called + script],
            capture_output=True,
            text=True,
            env=variables,
            timeout=300,
        )

    return run


def test_storage_that_is_too_small_says_so_also_where_scratch_is_a_relative_path(
    on_30_megabytes: Callable[[str], subprocess.CompletedProcess[str]],
) -> None:
    done = on_30_megabytes("mkdir s; flowos measure --quick --only fio --scratch s --out o")
    assert done.returncode == 1
    assert "small/s has room for a file of 15 MiB; 256 MiB are" in " ".join(done.stdout.split())
    assert "Traceback" not in done.stderr


def test_clients_of_a_storage_that_is_full_say_so_in_a_line_each(
    on_30_megabytes: Callable[[str], subprocess.CompletedProcess[str]],
) -> None:
    """Nothing of theirs is left there, so that the report still has its room."""
    done = on_30_megabytes(
        "mkdir s; head -c 29M /dev/zero >fill\n"
        "flowos measure --quick --only parallel_io --scratch s --out o --json\n"
        "[ -z $(ls -A s) ] || exit 91"
    )
    assert done.returncode == 0, done.stderr
    (unmeasured,) = json.loads(done.stdout)["report"]["run"]["unmeasured"]
    assert "s has room for files of 0 MiB; 16 MiB are needed" in str(unmeasured)
    assert "Traceback" not in done.stderr


def test_on_a_full_disk_the_report_of_before_stays_whole_and_the_code_says_it(
    on_30_megabytes: Callable[[str], subprocess.CompletedProcess[str]],
) -> None:
    done = on_30_megabytes(
        "looked_flowos measure --quick --only clock --minutes 0.05 --out o >/dev/null || exit 90\n"
        "md5sum o/* >before; head -c 100M /dev/zero >fill 2>/dev/null\n"
        "looked_flowos measure --quick --only clock --minutes 0.05 --out o --json; code=$?\n"
        "md5sum --quiet -c before || exit 91\n"
        "[ $(ls -A o | wc -l) = 5 ] || exit 92\n"
        "exit $code"
    )
    assert done.returncode == 3, done.stderr
    assert "the report cannot be written to o (No space left on device)" in done.stderr
    assert json.loads(done.stdout)["report"]["measurements"]


def test_a_report_folder_that_is_lost_meanwhile_is_not_exit_0_and_costs_no_number(
    flowos: Flowos, tmp_path: Path, variables: dict[str, str], looked_flowos: list[str]
) -> None:
    running = subprocess.Popen(
        [*looked_flowos, *SHORTLY, "--out", "page", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=variables,
    )
    assert running.stderr is not None
    assert "building" in running.stderr.readline()
    (tmp_path / "page").write_text("somebody else's")
    out, said = running.communicate(timeout=300)
    assert running.returncode == 3
    assert "the report cannot be written to page (File exists)" in said
    (listed,) = json.loads(flowos("list", "--json").stdout)
    assert json.loads(out)["report"]["run"]["id"] == listed["id"]


def test_a_cache_on_a_full_disk_gives_its_room_to_the_data_set_that_comes_next(
    on_30_megabytes: Callable[[str], subprocess.CompletedProcess[str]],
) -> None:
    done = on_30_megabytes(
        "mkdir old new; head -c 100000 /dev/urandom >old/a; head -c 100000 /dev/urandom >new/a\n"
        "flowos feed warm old --cache c --min-free 1 || exit 91\n"
        "cat /dev/zero >fill 2>/dev/null\n"
        "flowos feed warm new --cache c --min-free 1 || exit 92\n"
        "cat /dev/zero >>fill 2>/dev/null\n"
        "flowos feed warm old --cache empty --min-free 1 && exit 93\n"
        '[ -z "$(ls -A empty)" ] || exit 94'
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("1 of 1 samples are cached") == 2
    assert "No space left on device" in done.stderr
