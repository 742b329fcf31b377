"""Ranks of one task on several nodes of a real Slurm's slice."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import flowos as fo
from flowos.engine import HeldSlice, Provider, SliceOptions, provider_of
from flowos.model import Ask, Pool
from tests.waiting import comes

from .box import Box
from .test_srun_launcher import HELLO, NO_SHARED_MEMORY

_pools = iter(range(1_000_000))
NAMES = {"openmpi": "Open MPI", "mpich": "MPICH"}
MPIS = tuple(NAMES)
CORES = len(os.sched_getaffinity(0))
"""Of each node: both are this machine."""


@pytest.fixture(scope="module")
def hello(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return programs_in(tmp_path_factory.mktemp("hello"))


def programs_in(folder: Path, *mpis: str) -> Path:
    """The folder, with one program for each MPI, or for these."""
    (folder / "hello.c").write_text(HELLO)
    for mpi in mpis or MPIS:
        compiler = shutil.which(f"mpicc.{mpi}")
        assert compiler, f"no mpicc of {mpi}: tools/setup test installs it"
        words = (compiler, "-o", folder / mpi, folder / "hello.c")
        subprocess.run(words, check=True, capture_output=True)
    return folder


@pytest.fixture
def provider(box: Box, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    for name, value in box.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SLURM_NNODES", "7")
    keys = {"kind": "slurm", "nodes": 2, "shared": str(box.shared)}
    before = below(box.shared)  # of tests that killed a driver, until the next one starts
    yield provider_of(Pool(name=f"gangs{next(_pools)}", **keys))  # type: ignore[arg-type]
    assert comes(lambda: box.ask("squeue", "--noheader") == "")
    assert comes(lambda: below(box.shared) <= before), below(box.shared) - before


def below(folder: Path) -> set[str]:
    """All that is in it, also while it is being removed."""
    return {f"{at}/{name}" for at, folders, files in os.walk(folder) for name in folders + files}


def gang(program: object, *words: object, mpi: str = "openmpi", **more: object) -> fo.Flow:
    needs = fo.Needs(ranks=more.pop("ranks", 2), nodes=more.pop("nodes", None))  # type: ignore[arg-type]
    task = fo.command([program, *words], stdout="said", needs=needs, **more)  # type: ignore[arg-type]
    return fo.flow_output(fo.gang(task, mpi=mpi)())


def held(provider: Provider, nodes: int = 2, **options: object) -> HeldSlice:
    return HeldSlice(provider, Ask(nodes=nodes), SliceOptions(**options))  # type: ignore[arg-type]


def lines(result: list[object]) -> list[str]:
    return sorted(str(result[-1]).splitlines())


@pytest.mark.parametrize("mpi", MPIS)
def test_ranks_that_are_spread_are_one_world_of_all_nodes(
    provider: Provider, hello: Path, mpi: str
) -> None:
    with held(provider) as s:
        flow = gang(hello / mpi, mpi=mpi, nodes=2, ranks=4, variables=NO_SHARED_MEMORY)
        assert lines(s.run(flow)) == [
            f"{rank} of 4 on {node}, sum 6" for rank, node in enumerate(("n1", "n1", "n2", "n2"))
        ]


def test_ranks_take_as_few_nodes_as_have_the_cores_for_them(
    provider: Provider, hello: Path
) -> None:
    with held(provider) as s:
        for ranks, nodes in ((CORES, 1), (CORES + 1, 2)):
            said = lines(s.run(gang(hello / "mpich", mpi="mpich", ranks=ranks)))
            assert len({line.split()[4] for line in said}) == nodes
            assert len(said) == ranks


def test_gangs_of_many_runs_wait_for_each_other_and_not_for_ever(
    provider: Provider, hello: Path
) -> None:
    flow = gang(hello / "mpich", mpi="mpich", ranks=2 * CORES)
    one = fo.flow_output(fo.command(["true"], needs=fo.Needs(cores=CORES))())
    with held(provider) as s:
        runs = [s.submit(each) for each in (flow, one, flow, flow, one)]
        ends = [run.result(timeout=300) for run in runs]
    assert [len(lines(end)) for end in ends] == [2 * CORES, 0, 2 * CORES, 2 * CORES, 0]


@pytest.mark.parametrize(("mpi", "program"), [("openmpi", "mpich"), ("mpich", "openmpi")])
def test_a_program_of_another_mpi_is_refused_before_it_starts_with_what_mends_it(
    provider: Provider, hello: Path, mpi: str, program: str
) -> None:
    with held(provider) as s, pytest.raises(fo.TaskFailed) as failed:
        s.run(gang(hello / program, mpi=mpi, nodes=2))
    assert f"task '{program}': '{hello / program}' was built with " in str(failed.value)
    assert f'ask for {NAMES[program]} (mpi="{program}"), or' in str(failed.value)


def test_a_program_of_another_mpi_that_does_not_show_it_is_no_world_of_its_own(
    provider: Provider, hello: Path
) -> None:
    with held(provider) as s, pytest.raises(fo.TaskFailed) as failed:
        s.run(gang("sh", "-c", hello / "mpich", mpi="openmpi", nodes=2))
    assert "exited with 15" in str(failed.value)


def test_the_exit_code_the_limit_and_the_end_of_ranks_are_those_of_a_command(
    provider: Provider, hello: Path, box: Box
) -> None:
    with held(provider) as s:
        with pytest.raises(fo.TaskFailed, match="the command exited with 7"):
            s.run(gang(hello / "mpich", 7, mpi="mpich", nodes=2))
        with pytest.raises(fo.TimeLimitExceeded):
            s.run(gang("sleep", 1000, mpi="mpich", nodes=2, limit_seconds=0.5))
        run = s.submit(gang("sleep", 1000, mpi="mpich", nodes=2))
        assert comes(lambda: len(box.ask("squeue", "-hs", "--format=%i").split()) > 1)
    with pytest.raises(fo.SliceFreed):
        run.result(timeout=300)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (
            {"ranks": 2 * CORES + 1},
            f"needs 1 core for each of {2 * CORES + 1} ranks, the slice has 2 nodes with {CORES}",
        ),
        ({"ranks": 3, "nodes": 3}, "needs 3 nodes for its ranks, the slice has 2"),
        ({"mpi": "other"}, "srun starts no ranks of 'other'; it knows openmpi and mpich"),
    ],
)
def test_what_cannot_be_started_is_refused_before_anything_runs(
    provider: Provider, asked: dict[str, object], says: str
) -> None:
    with held(provider) as s, pytest.raises(fo.SliceRefused, match=says) as refused:
        s.run(gang("true", **asked))  # type: ignore[arg-type]
    assert str(refused.value).startswith("slice: task 'true'")


def test_a_slurm_without_what_an_mpi_speaks_is_refused_with_what_mends_it(
    provider: Provider, box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its srun says so: a plugin cannot be taken from the one that all tests share."""
    srun = tmp_path / "srun"
    real = shutil.which("srun")
    says = "MPI plugin types are...\n\tnone\n\tpmi2\n"
    srun.write_text(f'#!/bin/sh\n[ "$1" = --mpi=list ] && printf "{says}" || exec {real} "$@"\n')
    srun.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{box.variables['PATH']}")
    with held(provider) as s, pytest.raises(fo.SliceRefused) as refused:
        s.run(gang("true", nodes=2))
    assert "srun here has no --mpi=pmix, which ranks of Open MPI need (none, pmi2)" in str(
        refused.value
    )
    assert str(refused.value).endswith("or build the program with MPICH and its like")


LOSES = f"""
import sys, threading
from pathlib import Path
sys.path.append({str(Path(__file__).parent)!r})
from loses import note_answers
import flowos as fo
from flowos.engine import HeldSlice, SliceOptions, provider_of
from flowos.model import Ask, Pool
shared = Path(sys.argv[1])
began, go = f"echo $SLURM_PROCID $SLURMD_NODENAME >> {{shared}}/began", f"test -e {{shared}}/go"
script = f"{{go}}; waits=$?; {{began}}; [ $waits = 0 ] || exec sleep 1000; echo end $0"
needs = fo.Needs(ranks=2, nodes=2)
task = fo.command(["sh", "-c", script, fo.In("x")], inputs={{"x": fo.int64}}, needs=needs)
flow = fo.flow_output(fo.gang(task, mpi="mpich")(fo.flow_input("x", fo.int64)))
pool = provider_of(Pool(name="loses", kind="slurm", nodes=3, shared=str(shared)))
with HeldSlice(pool, Ask(nodes=3), SliceOptions()) as s:
    noting = (s._held.nodes, shared / "answered")
    threading.Thread(target=note_answers, args=noting, daemon=True).start()
    print(s.run(flow, 0) if sys.argv[2] == "run" else next(s.map(flow, [0])), *s.nodes)
"""


@pytest.mark.parametrize("way", ["run", "map"])
def test_a_gang_that_loses_a_node_begins_anew_on_those_that_are_left(way: str) -> None:
    """Also where it is another node than the one whose item it is. One whose kernel never answered
    is not missed, as a firewall may be there."""
    with Box(3, apart=True, conf="SlurmdTimeout=300\n") as box:
        content, shared = box.folder / "content", str(box.shared)
        program = subprocess.Popen(
            (*box.enter, sys.executable, "-c", LOSES, shared, way),
            env={**os.environ, **box.variables},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert comes(lambda: len(_lines_of(content / "began")) == 2)
        first, lost = (line.split()[1] for line in _lines_of(content / "began"))
        assert comes(lambda: lost in _lines_of(content / "answered"))
        (content / "go").touch()
        box.act("stop", lost)
        said, _ = program.communicate(timeout=300)
        left = sorted({"n1", "n2", "n3"} - {lost})
        assert said == f"['end 0\\nend 0\\n'] {' '.join(left)}\n"
        again = (line.split()[1] for line in (content / "began").read_text().splitlines()[2:])
        assert first in left
        assert sorted(again) == left


def _lines_of(file: Path) -> list[str]:
    return sorted(file.read_text().splitlines()) if file.exists() else []
