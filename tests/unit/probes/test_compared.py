"""What of each probe is compared between environments, and which numbers decide."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath

import pytest

from flowos.model import (
    Blas,
    Case,
    Compiler,
    Effort,
    Entered,
    Facts,
    FileSystemFacts,
    MeasurementRequest,
    Mpi,
    Sample,
    Tool,
    Tried,
    Unmeasured,
)
from flowos.probes import (
    ComparedCase,
    Probe,
    allowed_everywhere,
    blocked,
    entered,
    in_environment,
    probes_for,
    timed,
    verdicts_between,
)

COMPARED = {probe.name: probe for probe in probes_for(environments=2)}

GCC = Compiler(
    name="gcc-12",
    family="gcc",
    language="c",
    version="12.2.0",
    path=PurePath("/usr/bin/gcc"),
    openmp=True,
)


def blas(family: str, version: str = "1") -> Blas:
    path = PurePath(f"/usr/lib/lib{family}.so")
    return Blas(name=family, family=family, version=version, path=path)  # type: ignore[arg-type]


def mpi(family: str, version: str) -> Mpi:
    name, path = f"{family} {version}", PurePath(f"/usr/bin/{family}")
    return Mpi(name=name, family=family, version=version, compiler=path, mpirun=path)  # type: ignore[arg-type]


@pytest.fixture
def full(node: Callable[..., Facts]) -> Facts:
    """A node with all that is compared."""
    return replace(
        node(compilers=(GCC,), blas=(blas("mkl"), blas("blis"), blas("openblas"))),
        mpis=(mpi("openmpi", "4.1.4"), mpi("openmpi", "3.0"), mpi("mpich", "4.0")),
        tools=tuple(
            Tool(name=name, version=version, path=PurePath(path))
            for name, version, path in (
                ("fio", "fio-3.33", "/usr/bin/fio"),
                ("torch", "2.11.0", "/usr/bin/python3"),
            )
        ),
        tried=(Tried(name="io_uring", works=True), Tried(name="direct I/O", works=True)),
        storage=FileSystemFacts(file_system="ext4", free_bytes=100 << 30),
    )


def found(
    name: str, facts: Facts, request: MeasurementRequest | None = None
) -> tuple[ComparedCase, ...]:
    request = request or MeasurementRequest()
    if COMPARED[name].info.asked:
        request = replace(request, commands=(("sleep", "1"), ("sleep", "2")))
    answer = COMPARED[name].compared(facts, request)
    assert not isinstance(answer, Unmeasured), answer
    return answer


def sample(of: ComparedCase, metric: str, **levels: str) -> Sample:
    case = in_environment(of.shown, "bare").at(**levels)
    return Sample(run="r", case=case, round=1, metric=metric, unit="1", values=(1.0,))


@pytest.mark.parametrize("name", COMPARED)
@pytest.mark.parametrize("effort", ["quick", "normal", "full"])
def test_every_case_of_every_probe_has_a_program_and_its_own_name(
    full: Facts, name: str, effort: Effort
) -> None:
    cases = found(name, full, MeasurementRequest(effort=effort, probes=(name,)))
    assert len({c.shown for c in cases}) == len(cases) > 0
    for one in cases:
        program = one.probe.program(one.case)
        assert program.argv or program.build
        assert in_environment(one.shown, "a").levels[0] == ("env", "a")
        assert one.probe.info.margin == (0.06 if name in ("fio", "metadata") else 0.03)
        assert one.probe.ceiling(one.case) is None or name in ("gemm", "stream")


@pytest.mark.parametrize("name", COMPARED)
def test_what_a_node_lacks_is_said_by_the_probe(node: Callable[..., Facts], name: str) -> None:
    answer = COMPARED[name].compared(node(compilers=()), MeasurementRequest(probes=(name,)))
    assert isinstance(answer, Unmeasured)
    assert answer.reason


def test_the_same_binary_takes_forced_kernels_and_ones_own_stack_comes_as_it_is(
    full: Facts,
) -> None:
    (same,) = found("gemm", full)
    (own,) = found("gemm", full, MeasurementRequest(binary="own"))
    assert same.shown == own.shown
    assert same.shown.detail("stack") == "openblas 1 avx512f"
    assert own.shown.detail("stack") == "openblas 1 default"
    assert same.case.detail("sizes") == "1000,2048"


def test_a_library_of_an_unknown_family_comes_last(full: Facts) -> None:
    (one,) = found("gemm", replace(full, blas=(blas("other"), blas("mkl"))))
    assert one.case.level("library") == "mkl"


def test_stacks_that_differ_between_environments_are_one_case(full: Facts) -> None:
    newer = replace(full, compilers=(replace(GCC, name="gcc-14", version="14.1"),))
    old, new = found("stream", full), found("stream", newer)
    assert [c.shown for c in old] == [c.shown for c in new]
    assert "gcc-14" in new[0].shown.detail("stack")


def test_stream_is_entered_in_three_ways_on_all_cores_with_both_kinds_of_stores(
    full: Facts,
) -> None:
    cases = found("stream", full)
    points = {(c.way, c.shown.level("stores")) for c in cases}
    assert points == {(w, s) for w in ("exec", "shell", "run") for s in ("nt", "plain")}
    assert {c.shown.level("threads") for c in cases} == {"2"}
    for c in cases:
        program = c.probe.program(c.case)
        assert program.takes_turns
        assert program.memory_bytes == 24 * int(program.argv[0])
        assert program.argv[2:4] == ("17", "3600"), "as many passes, however fast"


def test_of_several_mpis_of_a_family_the_first_is_compared(full: Facts) -> None:
    (first,) = found("mpi", full)
    assert first.case.detail("version") == "4.1.4"
    assert first.probe.program(first.case).takes_turns
    assert first.probe.program(first.case).argv == ("8", "0.002")
    cases = found("mpi", full, MeasurementRequest(effort="full"))
    assert {c.shown.level("mpi"): c.case.detail("version") for c in cases} == {
        "openmpi": "4.1.4",
        "mpich": "4.0",
    }


def test_some_message_sizes_decide_and_the_rest_is_shown(full: Facts) -> None:
    of = found("mpi", full)[0]
    assert of.probe.decides(sample(of, "latency", bytes="8"))
    assert not of.probe.decides(sample(of, "latency", bytes="16"))
    assert not of.probe.decides(sample(of, "clock", bytes="8"))


def test_sequential_storage_is_decided_by_its_bandwidth_and_random_by_its_operations(
    full: Facts,
) -> None:
    cases = found("fio", full)
    assert len(cases) == 8
    for of in cases:
        sequential = of.shown.level("workload").startswith("sequential")
        assert of.probe.decides(sample(of, "bandwidth")) == sequential
        assert of.probe.decides(sample(of, "iops")) != sequential
        assert not of.probe.decides(sample(of, "latency_p99"))


def test_ways_to_enter() -> None:
    words = ("stream", "a b")
    assert entered("exec", words, ("/entry",)) == words
    assert entered("run", words, ("/entry", "-x")) == ("/entry", "-x", *words)
    assert entered("shell", words, ()) == ("/bin/sh", "-c", '"$@"', "sh", *words)


def test_what_one_environment_blocks_is_used_in_none() -> None:
    both = Tried(name="pinning", works=True)
    bare = Entered(label="bare", tried=(Tried(name="io_uring", works=True), both))
    pod = Entered(
        label="i@podman", tried=(Tried(name="io_uring", works=False, says="blocked"), both)
    )
    assert allowed_everywhere([bare, pod]) == allowed_everywhere([pod, bare]) == pod.tried
    assert blocked([bare, pod]) == (
        "io_uring is not to be had in i@podman (blocked): it was used in no environment",
    )
    assert blocked([pod, pod]) == ()


@pytest.mark.parametrize("probe", COMPARED.values(), ids=COMPARED)
def test_every_compared_probe_is_drawn_with_its_environments(probe: Probe) -> None:
    assert probe.info.env_charts
    for chart in probe.info.env_charts:
        assert "env" in (chart.x, *chart.series)


def test_starts_are_timed_by_the_engine() -> None:
    (reading,) = timed([0.1, 0.2])
    assert (reading.metric, reading.unit, reading.values) == ("startup", "second", (0.1, 0.2))


def test_each_environment_is_judged_beside_the_first_with_the_margin_of_its_probe() -> None:
    def turns(probe: str, metric: str, **levels: str) -> list[Sample]:
        return [
            Sample(
                run="r",
                case=Case(probe).at(env=env, **levels),
                round=number,
                metric=metric,
                unit="1/s",
                values=(rate,),
            )
            for number in range(16)
            for env, rate in (("a", 1.0), ("b", 0.95), ("b", 0.95), ("a", 1.0))
        ]

    seen = [
        *turns("stream", "triad"),
        *turns("stream", "copy"),
        *turns("fio", "iops", workload="random read"),
        *turns("fio", "iops", workload="random write"),
    ]
    verdicts = verdicts_between([Entered(label="a"), Entered(label="b")], seen)
    assert [(v.probe, v.metric, v.other, v.answer) for v in verdicts] == [
        ("geomean", "stream", "b", "slower"),
        ("geomean", "fio", "b", "equal"),
        ("stream", "triad", "b", "slower"),
        ("fio", "iops", "b", "equal"),
        ("fio", "iops", "b", "equal"),
    ]
