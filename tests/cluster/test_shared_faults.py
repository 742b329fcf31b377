"""A shared folder, or munge, that fails: no lost result, no held node, one clear line."""

import os
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.waiting import PATIENCE_SECONDS

from .box import Box
from .test_faults import awaited, is_free_of_all, kill_daemon, twice


def fill(box: Box) -> None:
    box.run("sh", "-c", f"cat /dev/zero >{box.shared}/filler")


def make_read_only(box: Box) -> None:
    box.act("remount", "ro")


def remove(box: Box) -> None:
    box.run("sh", "-c", f"rm -r {box.shared}/.flowos-*")


def unmount(box: Box) -> None:
    box.act("unmount", "shared")


FULL, READ_ONLY = "No space left on device", "Read-only file system"
RUN_FOLDER = r"cannot (make|write) the run folder SHARED\S+: "
GONE = r"cannot write into SHARED\S+, which node n1 sees: No such file or directory"
UNREACHED = r"the command was not reached, .* cannot open SHARED\S+: No such file or directory\b.*"
ECHO = r"failed TaskFailed task 'echo': {}; command: echo 1; given x = 1 \(int\)"
BLIND = "refused pool c: node n1 does not see folder SHARED, .*"


@pytest.mark.parametrize(
    ("fault", "triple", "echo", "held"),
    [
        (fill, RUN_FOLDER + FULL, RUN_FOLDER + FULL, []),
        (
            make_read_only,
            RUN_FOLDER + READ_ONLY,
            rf"cannot make a folder in SHARED\S+: {READ_ONLY}",
            [f"refused pool c: shared folder SHARED: {READ_ONLY}"],
        ),
        (remove, GONE, "", []),
        (unmount, GONE, UNREACHED, [BLIND]),
    ],
)
def test_a_shared_folder_that_fails_stops_no_worker_and_is_said_when_something_starts(
    fault: Callable[[Box], None], triple: str, echo: str, held: list[str]
) -> None:
    """What is removed is made again for a command."""
    last = ECHO.format(echo) if echo else r"ran \['1\\n'\]"
    expected = [r"ran \[4\]", f"failed LaunchFailed task 'triple': {triple}", last, *held]
    with Box(apart=True, shared_mib=8) as box, twice(box) as runs:
        assert runs.stdout
        assert runs.stdout.readline() == "ran [2]\n"
        fault(box)
        said = runs.communicate("\n", 2 * PATIENCE_SECONDS)[0].replace(str(box.shared), "SHARED")
        assert re.fullmatch("\n".join((*expected, "")), said), said


def test_nodes_are_not_held_through_a_shared_folder_that_is_full() -> None:
    with Box(apart=True, shared_mib=1) as box:
        fill(box)
        with twice(box) as runs:
            said = runs.communicate("\n", PATIENCE_SECONDS)[0]
            assert said == f"refused pool c: shared folder {box.shared}: {FULL}\n"


LARGE = """
import sys, tempfile
from pathlib import Path
import flowos as fo
from flowos.engine import HeldSlice, SliceOptions, provider_of
from flowos.model import Ask, FlowosError, Pool
counts = fo.command(["wc", "-c", fo.In("file")], name="count", stdout="said")
flow = fo.flow_output(counts(fo.flow_input("file", fo.File)))
pool = provider_of(Pool(name="c", kind="slurm", nodes=2, shared=sys.argv[1]))
with tempfile.TemporaryDirectory(dir="/tmp") as own, HeldSlice(pool, Ask(), SliceOptions()) as s:
    for size in (9 << 20, 1 << 20):
        file = Path(own, "file")
        file.write_bytes(bytes(size))
        try:
            print(s.run(flow, file)[0].split()[0])
        except FlowosError as error:
            print(str(error).replace(own, "OWN"))
"""


def test_a_file_that_does_not_fit_the_shared_folder_is_refused_and_leaves_room() -> None:
    with Box(apart=True, shared_mib=8) as box:
        done = box.run(sys.executable, "-c", LARGE, str(box.shared))
        refused, counted = done.stdout.splitlines()
        assert refused.startswith(
            "task 'count', input 'file': node n1 does not see OWN/file, and it cannot be copied to "
            f"shared folder {box.shared}: {FULL}; command: wc -c OWN/file; given file = "
        )
        assert (counted, done.stderr) == (f"{1 << 20}", "")
        awaited(lambda: is_free_of_all(box), "its job is held")


HOLDS = """
import os, sys
from flowos.engine import provider_of
from flowos.model import Ask, Pool, SliceRefused
def holds(ask):
    try:
        provider_of(Pool(name="c", kind="slurm", nodes=2, shared=sys.argv[1])).hold(ask)
    except SliceRefused as error:
        print(error)
holds(Ask(nodes=2))
holds(Ask(memory_bytes=1 << 30))
os.environ["SLURM_JOB_ID"] = "1"
holds(Ask())
"""


def test_a_munge_that_is_gone_is_said_in_its_words_before_nodes_are_held() -> None:
    """Also where Slurm is asked first: for memory, and of the job around a program."""
    with Box(apart=True) as box:
        kill_daemon(box, "munged")
        done = box.run(sys.executable, "-c", HOLDS, str(box.shared))
        assert done.stdout == 3 * (
            f'pool c: Munge encode failed: Failed to connect to "{box.folder}/munge.sock": '
            "Connection refused; see that munged on this machine runs\n"
        ), done
        box.act("begin", "munged")
        awaited(lambda: is_free_of_all(box), "a job is there")


WAITS = """
import sys
from flowos.engine import provider_of
from flowos.model import Ask, Pool
provider = provider_of(Pool(name="c", kind="slurm", nodes=2, shared=sys.argv[1]))
held = provider.hold(Ask(nodes=2), lambda event: print(event.what, flush=True))
sys.stdin.readline()
provider.free(held)
"""


def test_what_a_program_that_was_killed_while_it_waited_left_there_is_removed_by_the_next_one(
    box: Box,
) -> None:
    def begun() -> "subprocess.Popen[str]":
        words, pipe = (sys.executable, "-c", WAITS, str(box.shared)), subprocess.PIPE
        env = {**os.environ, **box.variables}
        return subprocess.Popen(words, env=env, stdin=pipe, stdout=pipe, text=True)

    def said(program: "subprocess.Popen[str]") -> str:
        assert program.stdout
        return program.stdout.readline().strip()

    with begun() as holds:
        assert said(holds) == "held"
        with begun() as waits:
            assert said(waits) == "waiting"
            waits.kill()
        awaited(lambda: "PENDING" not in box.ask("squeue", "--noheader", "--format=%T"), "it waits")
        (left,) = box.shared.rglob("*proof*")
        holds.communicate("\n")
    assert left.exists()
    with begun() as after:
        assert said(after) in ("held", "waiting")
        assert not left.exists()
        after.communicate("\n")
    assert not [*box.shared.glob(".flowos-*")]
    awaited(lambda: is_free_of_all(box), "a job is there")
