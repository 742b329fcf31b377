from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath

import pytest

from flowos.model import (
    Blas,
    Case,
    Effort,
    Exited,
    Facts,
    Killed,
    Measurement,
    MeasurementRequest,
    Outcome,
    Pairs,
    Trust,
    Unmeasured,
)
from flowos.probes import pool_words
from flowos.probes.gemm import DEFAULT, SECONDS, Gemm, slow_defaults

MakeNode = Callable[..., Facts]
CasesOf = Callable[..., tuple[Case, ...]]
PROBE = Gemm()
OPENBLAS = Blas(
    name="openblas-pthread",
    family="openblas",
    version="0.3.21",
    path=PurePath("/usr/lib/libopenblas.so.0"),
)
NUMPY = replace(
    OPENBLAS, name="numpy", path=PurePath("/np/lib.so"), symbol="scipy_{}_64_", integer_bytes=8
)
BLIS = Blas(name="blis", family="blis", version="0.9.0", path=PurePath("/usr/lib/libblis.so.4"))
MKL = Blas(name="mkl", family="mkl", version="2026.2", path=PurePath("/opt/libmkl_rt.so.3"))
OTHER = Blas(name="netlib", family="other", version="", path=PurePath("/usr/lib/libblas.so.3"))


@pytest.fixture
def cases_of(node: MakeNode) -> CasesOf:
    def of(
        *blas: Blas, effort: Effort = "normal", cpu_model: str = "AMD EPYC", **facts: int
    ) -> tuple[Case, ...]:
        cases = PROBE.cases(
            node(blas=blas, cpu_model=cpu_model, **facts), MeasurementRequest(effort=effort)
        )
        assert not isinstance(cases, Unmeasured)
        return cases

    return of


def chosen(cases: tuple[Case, ...]) -> list[tuple[str, str, str]]:
    return [(c.level("cores"), c.level("library"), c.level("isa")) for c in cases]


def words(case: Case) -> dict[str, str]:
    argv = PROBE.program(case).argv
    return dict(zip(argv[::2], argv[1::2], strict=True))


def answer(kernel: str) -> Outcome:
    text = f"""{{"readings": [{{"metric": "flops", "unit": "flop/s", "values": [1e11],
    "levels": {{"type": "f64", "n": "2048"}}, "notes": {{"kernel": "{kernel}"}}}}]}}"""
    return Outcome(end=Exited(0), stdout=text.encode())


def measured(isa: str, best: float, n: str = "2048", **details: str) -> Measurement:
    levels: Pairs = (
        ("cores", "2"),
        ("library", "openblas"),
        ("isa", isa),
        ("type", "f64"),
        ("n", n),
    )
    return Measurement(
        case=Case("gemm", levels=levels, details=tuple(details.items())),
        metric="flops",
        unit="flop/s",
        count=1,
        median=best,
        low=best,
        high=best,
        best=best,
    )


SKYLAKEX = measured("avx512f", 199e9, kernel="SkylakeX", forced_by="OPENBLAS_CORETYPE=SkylakeX")


def test_each_library_is_measured_as_it_comes_and_with_its_widest_kernels(
    cases_of: CasesOf,
) -> None:
    found = chosen(cases_of(OPENBLAS, BLIS))
    for cores in ("1", "2"):
        for library in ("openblas-pthread", "blis"):
            assert (cores, library, DEFAULT) in found
            assert (cores, library, "avx512f") in found


def test_one_openblas_is_measured_per_instruction_set_on_all_cores(cases_of: CasesOf) -> None:
    narrow = [
        c for c in chosen(cases_of(BLIS, OPENBLAS, NUMPY)) if c[2] in ("sse4.2", "avx", "avx2")
    ]
    assert narrow == [("2", "openblas-pthread", isa) for isa in ("sse4.2", "avx", "avx2")]


def test_full_effort_measures_every_library_with_all_kernels_up_to_13056(
    cases_of: CasesOf,
) -> None:
    cases = cases_of(OPENBLAS, BLIS, effort="full")
    assert len(cases) == 2 * 2 * 5
    assert words(cases[0])["--sizes"].endswith("10000,13056")


def test_quick_effort_measures_all_cores_only(cases_of: CasesOf) -> None:
    assert {c[0] for c in chosen(cases_of(OPENBLAS, effort="quick", cores=4))} == {"4"}


@pytest.mark.parametrize("effort", ["quick", "normal", "full"])
@pytest.mark.parametrize("libraries", [1, 12])
def test_all_cases_together_keep_the_time(
    cases_of: CasesOf, effort: Effort, libraries: int
) -> None:
    blas = tuple(replace(OPENBLAS, name=f"openblas-{i}") for i in range(libraries))
    cases = cases_of(*blas, effort=effort)
    assert sum(PROBE.seconds(c) - 0.1 for c in cases) <= SECONDS[effort] + 0.005 * len(cases)


def test_mkl_is_forced_on_processors_of_intel_only(cases_of: CasesOf) -> None:
    assert {c[2] for c in chosen(cases_of(MKL))} == {DEFAULT}
    intel = cases_of(MKL, cpu_model="Intel(R) Xeon(R) Gold 6148")
    assert "avx512f" in {c[2] for c in chosen(intel)}


def test_a_library_of_another_kind_is_measured_as_it_comes(cases_of: CasesOf) -> None:
    assert {c[2] for c in chosen(cases_of(OTHER))} == {DEFAULT}


def test_kernels_that_the_cpu_lacks_are_not_asked_for(node: MakeNode) -> None:
    facts = node(blas=(OPENBLAS,), instruction_sets=("sse4.2", "avx"))
    cases = PROBE.cases(facts, MeasurementRequest(effort="full"))
    assert not isinstance(cases, Unmeasured)
    assert {c.level("isa") for c in cases} == {DEFAULT, "sse4.2", "avx"}


def test_sizes_that_do_not_fit_into_half_the_memory_are_left_out(cases_of: CasesOf) -> None:
    (case, *_) = cases_of(OPENBLAS, effort="full", memory_bytes=1 << 30)
    assert words(case)["--sizes"].endswith("3072,4096")


def test_the_command_line_names_library_symbol_kernels_and_cpus(cases_of: CasesOf) -> None:
    cases = cases_of(NUMPY)
    forced = next(c for c in cases if c.level("isa") == "avx512f" and c.level("cores") == "2")
    assert words(forced)["--library"] == "/np/lib.so"
    assert words(forced)["--symbol"] == "scipy_{}_64_"
    assert words(forced)["--core"] == "SkylakeX"
    assert words(forced)["--cpus"] == "0,1"
    program = PROBE.program(forced)
    assert ("OPENBLAS_NUM_THREADS", "2") in program.variables
    assert program.build is not None
    assert program.build.libraries == ("-ldl", "-lm")


def test_a_default_names_no_kernels(cases_of: CasesOf) -> None:
    assert "--core" not in words(cases_of(OPENBLAS)[0])


def test_the_ceiling_is_that_of_the_kernels_instruction_set(cases_of: CasesOf) -> None:
    case = next(c for c in cases_of(OPENBLAS) if c.level("isa") == "avx")
    assert PROBE.ceiling(case.at(type="f32", n="1000")) == Case(
        "flops", levels=(("cores", "2"), ("isa", "avx"), ("type", "f32"))
    )


def test_the_ceiling_of_a_default_is_that_of_the_widest_instruction_set(
    cases_of: CasesOf,
) -> None:
    ceiling = PROBE.ceiling(cases_of(OPENBLAS)[0])
    assert ceiling == Case("flops", levels=(("cores", "1"), ("isa", "avx512f")))


def test_on_an_unknown_processor_a_default_is_bounded_by_what_was_measured(
    node: MakeNode,
) -> None:
    cases = PROBE.cases(node(blas=(OPENBLAS,), instruction_sets=()), MeasurementRequest())
    assert not isinstance(cases, Unmeasured)
    assert PROBE.ceiling(cases[0]) == Case("flops", levels=(("cores", "1"),))


@pytest.mark.parametrize(("signal", "name"), [(4, "SIGILL"), (6, "SIGABRT")])
def test_forced_kernels_that_do_not_run_here_are_unmeasured_with_the_reason(
    cases_of: CasesOf, signal: int, name: str
) -> None:
    forced = next(c for c in cases_of(BLIS) if c.level("isa") == "avx512f")
    read = PROBE.read(forced, Outcome(end=Killed(signal)))
    assert isinstance(read, Unmeasured)
    assert read.reason == f"blis has no skx kernels that run here ({name})"


def test_a_crash_of_a_default_is_told_as_such(cases_of: CasesOf) -> None:
    read = PROBE.read(cases_of(BLIS)[0], Outcome(end=Killed(4)))
    assert isinstance(read, Unmeasured)
    assert "signal 4" in read.reason


def test_a_library_that_ignores_the_wish_is_unmeasured(cases_of: CasesOf) -> None:
    forced = next(c for c in cases_of(OPENBLAS) if c.level("isa") == "avx512f")
    read = PROBE.read(forced, answer("Haswell"))
    assert isinstance(read, Unmeasured)
    assert read.reason == "openblas-pthread was asked for SkylakeX kernels and took Haswell"


def test_readings_carry_type_and_size(cases_of: CasesOf) -> None:
    forced = next(c for c in cases_of(OPENBLAS) if c.level("isa") == "avx512f")
    readings = PROBE.read(forced, answer("skylakex"))
    assert not isinstance(readings, Unmeasured)
    assert readings[0].levels == (("type", "f64"), ("n", "2048"))


def test_without_compiler_or_library_the_reason_names_the_remedy(node: MakeNode) -> None:
    for facts, remedy in (
        (node(blas=(OPENBLAS,), compilers=()), "apt install gcc"),
        (node(), "pip install numpy"),
    ):
        answered = PROBE.cases(facts, MeasurementRequest())
        assert isinstance(answered, Unmeasured)
        assert remedy in answered.remedy


def test_a_slow_default_is_named_with_the_remedy() -> None:
    default = measured(DEFAULT, 114e9, kernel="Haswell")
    (finding,) = slow_defaults((default, SKYLAKEX))
    assert finding.do == "`export OPENBLAS_CORETYPE=SkylakeX`"
    assert finding.gain == pytest.approx(SKYLAKEX.best / 114e9)
    assert finding.trusted
    assert finding.why == (
        "openblas chose its Haswell kernels: at best 114 Gflop/s (f64, n 2048, 2 cores), where its"
        " SkylakeX kernels do 199 Gflop/s"
    )


def test_the_same_kernels_that_were_slower_for_once_are_no_choice_to_mend() -> None:
    kernel = SKYLAKEX.case.detail("kernel")
    assert slow_defaults((measured(DEFAULT, 114e9, kernel=kernel), SKYLAKEX)) == ()
    marked = replace(measured(DEFAULT, 114e9), trust=Trust(marks=("disturbed",)))
    (finding,) = slow_defaults((marked, SKYLAKEX))
    assert not finding.trusted


def test_one_fast_value_among_slow_ones_is_no_proof_of_a_slow_default() -> None:
    """Seen on a busy machine: three values each, equal medians, and x2.79 by the best ones."""
    for median, told in ((15.45e9, False), (44e9, True)):
        forced = replace(SKYLAKEX, median=median, best=44.67e9)
        assert bool(slow_defaults((measured(DEFAULT, 16.02e9), forced))) is told


def test_an_environment_that_forces_slow_kernels_is_named() -> None:
    default = measured(DEFAULT, 114e9, kernel="Haswell", environment="OPENBLAS_CORETYPE=Haswell")
    (finding,) = slow_defaults((default, SKYLAKEX))
    assert "kernels, as your environment sets OPENBLAS_CORETYPE=Haswell: at best 114" in finding.why


def test_the_worst_size_of_a_slow_default_is_told_once() -> None:
    slower = replace(SKYLAKEX, case=SKYLAKEX.case.at(n="4096"))
    (finding,) = slow_defaults(
        (
            measured(DEFAULT, 114e9, kernel="Haswell"),
            measured(DEFAULT, 80e9, n="4096", kernel="Haswell"),
            SKYLAKEX,
            measured("avx2", 110e9, kernel="Haswell", forced_by="x"),
            slower,
        )
    )
    assert "80 Gflop/s (f64, n 4096" in finding.why


@pytest.mark.parametrize(("share", "slow"), [(0.8, False), (0.79, True)])
def test_a_default_is_slow_below_four_fifths_of_the_best_that_was_forced(
    share: float, slow: bool
) -> None:
    """At n of 1000 and more; the fastest of several counts, whichever was measured first."""
    best = replace(SKYLAKEX, case=SKYLAKEX.case.at(n="1000"), best=100e9, median=100e9)
    other = replace(best, case=best.case.at(isa="avx2"), best=50e9, median=50e9)
    default = measured(DEFAULT, share * 100e9, n="1000", kernel="Haswell")
    for forced in ((best, other), (other, best)):
        found = slow_defaults((default, *forced))
        assert [each.gain for each in found] == ([pytest.approx(1 / share)] if slow else [])


@pytest.mark.parametrize(
    ("took", "forced", "told"),
    [
        ("", "", True),
        ("Haswell", "", True),
        ("", "SkylakeX", True),
        ("SKYLAKEX", "SkylakeX", False),
    ],
)
def test_a_default_of_unknown_kernels_is_told_and_one_of_the_same_is_not(
    took: str, forced: str, told: bool
) -> None:
    best = measured("avx512f", 199e9, kernel=forced, forced_by="A=b")
    assert bool(slow_defaults((measured(DEFAULT, 50e9, kernel=took), best))) is told


def test_a_fair_default_and_small_sizes_raise_no_finding() -> None:
    assert slow_defaults((measured(DEFAULT, 180e9), SKYLAKEX)) == ()
    assert slow_defaults((measured(DEFAULT, 1e9),)) == ()
    small = replace(SKYLAKEX, case=SKYLAKEX.case.at(n="256"))
    assert slow_defaults((measured(DEFAULT, 1e9, n="256"), small)) == ()


def test_sizes_without_time_are_named_with_the_reason_and_the_remedy() -> None:
    given = {"sizes": "256,2048,4096", "seconds": "1.80"}
    sizes = [measured(DEFAULT, 1e9, n=n, **given) for n in ("256", "2048")]
    wide = [measured("avx2", 1e9, n=n, **given) for n in ("256", "2048", "4096")]
    gaps = PROBE.left_out((*sizes, *wide, SKYLAKEX))
    assert {(c.level("isa"), c.level("type")): c.level("n") for c, _ in gaps} == {
        (DEFAULT, "f64"): "4096",
        (DEFAULT, "f32"): "256, 2048, 4096",
        ("avx2", "f32"): "256, 2048, 4096",
    }
    assert {why.reason for _, why in gaps} == {
        "these sizes would take longer than the 1.8 s that a library has"
    }
    assert {why.remedy for _, why in gaps} == {"flowos measure --full --only flops,gemm"}


def test_the_remedy_measures_on_the_nodes_that_were_measured() -> None:
    given = {"sizes": "256,4096", "seconds": "1.80"}
    gaps = PROBE.left_out((measured(DEFAULT, 1e9, n="256", **given),), pool_words("hpc", 1))
    assert {why.remedy for _, why in gaps} == {
        "flowos measure --full --only flops,gemm --pool hpc --nodes 1"
    }
