"""memory_latency and core_latency, by every compiler here: right answers, clear refusals."""

import pytest

from flowos.probes._base import CANNOT_MEASURE_HERE
from tests.integration.test_programs_ceilings import (
    BOTH,
    COMPILERS,
    CPU,
    CROSS,
    QEMU,
    Built,
    built,
    readings,
    run,
)

__all__ = ["built"]

SHORT = ("--repetitions", "2", "--seconds", "0.0005")
TWO = BOTH.replace(",", "-")


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_load_takes_longer_the_larger_the_working_set(built: Built, compiler: str) -> None:
    sizes = ("--least", "16384", "--most", str(64 << 20), "--per-octave", "1")
    program = built.program(compiler, "memory_latency")
    often = ("--repetitions", "15", "--seconds", "0.0005")  # one at least is not interrupted
    found = readings(program, "--cpu", CPU, *sizes, *often)
    assert [int(r["levels"]["bytes"]) for r in found] == [16384 << i for i in range(13)]
    assert min(found[-1]["values"]) > 2 * min(found[0]["values"])


def test_the_last_size_is_the_largest_and_one_size_is_one_reading(built: Built) -> None:
    program = built.program("gcc", "memory_latency")
    for least, most, count in ((16384, 1 << 20, 13), (1 << 20, 1 << 20, 1), (16384, 100_000, 6)):
        sizes = ("--least", str(least), "--most", str(most), "--per-octave", "2")
        found = readings(program, "--cpu", CPU, *sizes, *SHORT)
        assert len(found) == count
        assert int(found[-1]["levels"]["bytes"]) <= most


def test_memory_of_this_node_can_be_bound(built: Built) -> None:
    sizes = ("--node", "0", "--least", str(1 << 20), "--most", str(1 << 20))
    done = run(built.program("gcc", "memory_latency"), "--cpu", CPU, *sizes, *SHORT)
    assert done.returncode in (0, CANNOT_MEASURE_HERE), done.stderr


@pytest.mark.skipif(TWO == BOTH, reason="two cpus are needed")
@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_line_goes_from_core_to_core(built: Built, compiler: str) -> None:
    words = ("--pairs", f"{TWO},{TWO}", "--repetitions", "3")
    found = readings(built.program(compiler, "core_latency"), *words)
    assert ["-".join(r["levels"].values()) for r in found] == [TWO, TWO]
    assert all(1e-9 < min(r["values"]) < 1e-3 for r in found)


@pytest.mark.skipif(not (QEMU and CROSS), reason="needs gcc-aarch64-linux-gnu and qemu-user-static")
def test_both_go_through_on_aarch64(built: Built) -> None:
    """Emulated: the cycle checks itself; the times mean nothing."""
    assert QEMU is not None
    assert CROSS is not None
    for name, words in (
        ("memory_latency", ("--cpu", CPU, "--most", "65536")),
        ("core_latency", ("--pairs", TWO)),
    ):
        if TWO != BOTH or name == "memory_latency":
            assert readings(QEMU, built.program(CROSS, name), *words, *SHORT)


@pytest.mark.parametrize(
    ("program", "words", "complaint"),
    [
        ("memory_latency", (), "usage: memory_latency --cpu NUMBER"),
        ("memory_latency", ("--cpu", CPU, "--least", "64"), "at least 1024"),
        ("memory_latency", ("--cpu", CPU, "--most", "4096"), "usage: "),
        ("memory_latency", ("--cpu", CPU, "--repetitions", "0"), "--repetitions 1..100"),
        ("memory_latency", ("--cpu", CPU, "--node", "4096"), "--node 4096: at most 1023"),
        ("memory_latency", ("--cpu", "8191"), "cannot run on cpu 8191"),
        ("core_latency", (), "usage: core_latency --pairs"),
        ("core_latency", ("--pairs", "0"), "--pairs 0: write them as 0-1,0-64"),
        ("core_latency", ("--pairs", "1-1"), "--pairs 1-1: write them as"),
        ("core_latency", ("--pairs", "0-1;"), "--pairs 0-1;: write them as"),
        ("core_latency", ("--pairs", "0-1", "--seconds", "0"), "usage: "),
    ],
)
def test_odd_arguments_are_refused_in_one_line(
    built: Built, program: str, words: tuple[str, ...], complaint: str
) -> None:
    done = run(built.program("gcc", program), *words)
    assert done.returncode == 1
    assert complaint in done.stderr
    assert len(done.stderr.splitlines()) == 1
