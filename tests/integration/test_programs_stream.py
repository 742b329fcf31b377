"""stream.c, by every compiler here: a right answer, its own loops, and clear refusals."""

import os
import shutil
import subprocess
from pathlib import Path, PurePath

import pytest

from flowos.engine import here, run_interleaved
from flowos.model import (
    Case,
    Compiler,
    Exited,
    Facts,
    Launch,
    LogicalCpu,
    MeasurementRequest,
    Outcome,
    Reading,
    Unmeasured,
)
from flowos.probes import stream
from flowos.probes.stream import Stack, Stream

PROGRAMS = Path(stream.__file__).parent / "programs"
SOURCE = PROGRAMS / "stream.c"
ELEMENTS = 1 << 20


def find_compilers() -> tuple[Compiler, ...]:
    names = ("gcc", "gcc-12", "clang", "clang-14", "clang-16", "icx", "nvc")
    found = (
        Compiler(
            name=name,
            family=name.partition("-")[0],  # type: ignore[arg-type]
            language="c",
            version="1",
            path=PurePath(path),
            openmp=True,
        )
        for name in names
        if (path := shutil.which(name))
    )
    return tuple(c for c in found if does_openmp(c))


def does_openmp(compiler: Compiler) -> bool:
    argv = [str(compiler.path), "-fopenmp", "-x", "c", "-", "-o", "/dev/null"]
    source = b"int omp_get_max_threads(void); int main(void) { return !omp_get_max_threads(); }"
    return subprocess.run(argv, input=source, capture_output=True, check=False).returncode == 0


CPUS = tuple(
    LogicalCpu(number=n, core=n, socket=0, node=0) for n in sorted(os.sched_getaffinity(0))
)
HERE = Facts(
    host="here",
    system="Linux",
    kernel="",
    architecture=os.uname().machine,
    cpu_model="",
    cpus=CPUS,
    allowed=tuple(c.number for c in CPUS),
    instruction_sets=("avx512f",) if "avx512f" in Path("/proc/cpuinfo").read_text() else (),
    compilers=find_compilers(),
)
STACKS = stream.stacks_of(HERE)


def compile_by(stack: Stack, to: Path, source: Path = SOURCE) -> Path:
    argv = [str(stack.compiler.path), *stack.flags, str(source), "-o", str(to), f"-I{PROGRAMS}"]
    subprocess.run(argv, check=True, capture_output=True)
    return to


def run(binary: Path, *words: str, **variables: str) -> Outcome:
    threads = words[1] if len(words) > 1 and words[1].isdigit() else "1"
    done = subprocess.run(
        [binary, *words],
        capture_output=True,
        check=False,
        timeout=300,
        env={"PATH": os.environ["PATH"], "OMP_NUM_THREADS": threads, **variables},
    )
    return Outcome(end=Exited(done.returncode), stdout=done.stdout, stderr=done.stderr)


def readings(outcome: Outcome) -> tuple[Reading, ...]:
    case = Case("stream", levels=(("threads", "1"),))
    found = Stream().read(case, outcome)
    assert not isinstance(found, Unmeasured), found
    return found


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_by(STACKS[0], tmp_path_factory.mktemp("stream") / "stream")


def by_name(stack: Stack) -> str:
    return f"{stack.compiler.name}-{stack.level}"


def disassembly(binary: Path) -> str:
    objdump = subprocess.run(
        ["objdump", "-d", binary], capture_output=True, check=True, text=True
    ).stdout
    assert "<copy_plain" in objdump
    return objdump


@pytest.mark.parametrize("stack", STACKS, ids=by_name)
def test_no_loop_became_a_call_of_memcpy_and_every_answer_is_right(
    stack: Stack, tmp_path: Path
) -> None:
    made = compile_by(stack, tmp_path / "stream")
    assert "memcpy" not in disassembly(made)
    for stores in ("plain", "nt"):
        found = readings(run(made, str(ELEMENTS), "1", "4", "3600", stores, "system"))
        assert [r.metric for r in found] == ["copy", "scale", "add", "triad"]
        assert all(len(r.values) == 3 and min(r.values) > 0 for r in found)
        assert {r.unit for r in found} == {"byte/s"}


def test_programs_that_take_turns_have_as_many_passes_each(binary: Path) -> None:
    argv = (str(binary), "65536", "1", "7", "3600", "plain", "system")
    launch = Launch(argv=argv, variables=(("OMP_NUM_THREADS", "1"),))
    for outcome in run_interleaved([here().prepare(launch), here().prepare(launch)], "seed"):
        assert isinstance(outcome, Outcome)
        assert {len(r.values) for r in readings(outcome)} == {6}


def test_without_anybody_who_gives_turns_the_program_says_so(binary: Path) -> None:
    words = ("65536", "1", "3", "0", "plain", "system")
    outcome = run(binary, *words, FLOWOS_TURNS="/nowhere/turns")
    assert outcome.end == Exited(1)
    assert outcome.stderr == b"FLOWOS_TURNS=/nowhere/turns: nobody gives turns there\n"


COPY = b"""
#include <stddef.h>
void copy(double *restrict c, const double *restrict a, size_t n) {
  for (size_t j = 0; j < n; j++) c[j] = a[j];
}
"""


@pytest.mark.parametrize("stack", STACKS, ids=by_name)
def test_our_flags_are_what_keeps_a_copy_loop_from_becoming_a_call(
    stack: Stack, tmp_path: Path
) -> None:
    calls = []
    for flags in (("-O3",), stack.flags):
        made = tmp_path / "copy.o"
        argv = [str(stack.compiler.path), *flags, "-x", "c", "-", "-c", "-o", str(made)]
        subprocess.run(argv, input=COPY, check=True, capture_output=True)
        listing = subprocess.run(["objdump", "-dr", made], check=True, capture_output=True)
        calls.append(b"memcpy" in listing.stdout)
    assert calls == [True, False]


@pytest.mark.parametrize("stores", ["plain", "nt"])
@pytest.mark.skipif(len(CPUS) < 2, reason="needs two cpus")
def test_threads_bound_apart_are_seen_on_as_many_cpus(binary: Path, stores: str) -> None:
    bound = {"OMP_PLACES": "cores", "OMP_PROC_BIND": "close"}
    found = readings(run(binary, str(ELEMENTS), "2", "3", "0.05", stores, "huge", **bound))
    assert dict(found[0].notes)["cpus"] == "2"
    assert dict(found[0].notes)["elements"] == str(ELEMENTS)


def test_one_wrong_element_is_a_failure_that_names_the_array(tmp_path: Path) -> None:
    text = SOURCE.read_text()
    broken = text.replace("j < n; j++) c[j] = a[j];", "j < n - 1; j++) c[j] = a[j];")
    assert broken != text
    source = tmp_path / "stream.c"
    source.write_text(broken)
    made = compile_by(STACKS[0], tmp_path / "stream", source)
    outcome = run(made, str(ELEMENTS), "1", "3", "0.01", "plain", "system")
    assert outcome.end == Exited(1)
    assert b"is wrong by a relative" in outcome.stderr
    assert outcome.stdout == b""


def test_huge_pages_are_used_or_avoided_as_asked(binary: Path) -> None:
    policy = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
    if "[never]" in policy:
        pytest.skip("this system has no transparent huge pages")
    held = {}
    for pages in ("huge", "small"):
        words = (str(8 * ELEMENTS), "1", "3", "0.01", "plain", pages)
        held[pages] = int(dict(readings(run(binary, *words))[0].notes)["huge_bytes"])
    assert held["small"] == 0
    assert held["huge"] >= 8 * ELEMENTS * 8


def test_fewer_threads_than_asked_for_are_a_failure(binary: Path) -> None:
    words = (str(ELEMENTS), "2", "3", "0.01", "plain", "system")
    outcome = run(binary, *words, OMP_THREAD_LIMIT="1")
    assert outcome.end == Exited(1)
    assert outcome.stderr == b"OpenMP gives 1 threads, not 2: set OMP_NUM_THREADS\n"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "usage: stream ELEMENTS"),
        (("many", "1", "3", "1", "plain", "system"), "ELEMENTS=many: give a whole number"),
        (("0", "1", "3", "1", "plain", "system"), "ELEMENTS=0: give a whole number from 64"),
        (("100", "-2", "3", "1", "plain", "system"), "THREADS=-2: give a whole number from 1"),
        (("100", "1", "1", "1", "plain", "system"), "REPEATS=1: give a whole number from 3"),
        (("100", "1", "3", "soon", "plain", "system"), "SECONDS=soon: give a number"),
        (("100", "1", "3", "1", "fast", "system"), "fast: give plain or nt"),
        (("100", "1", "3", "1", "plain", "giant"), "giant: give system, huge or small"),
    ],
)
def test_wrong_words_get_one_clear_line(
    binary: Path, words: tuple[str, ...], complaint: str
) -> None:
    outcome = run(binary, *words)
    assert outcome.end == Exited(1)
    assert complaint in outcome.stderr.decode()
    assert outcome.stderr.count(b"\n") == 1


def test_memory_that_cannot_be_had_is_said(binary: Path) -> None:
    outcome = run(binary, str(1 << 40), "1", "3", "1", "plain", "system")
    assert Stream().read(Case("stream"), outcome) == Unmeasured(
        reason="not enough memory for the arrays", remedy="free memory"
    )


def test_the_probes_own_case_runs_as_it_stands(tmp_path: Path) -> None:
    found = Stream().cases(HERE, MeasurementRequest(effort="quick"))
    assert not isinstance(found, Unmeasured)
    program = Stream().program(found[0])
    assert program.build is not None
    made = tmp_path / "stream"
    argv = [program.build.compiler, *program.build.flags, str(SOURCE), "-o", str(made)]
    subprocess.run(argv, check=True, capture_output=True)
    outcome = run(made, *program.argv, **dict(program.variables))
    rates = Stream().read(found[0], outcome)
    assert not isinstance(rates, Unmeasured)
    assert max(rates[3].values) > 1e8
