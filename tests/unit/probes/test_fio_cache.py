"""Which storage numbers, compared with each other, are those of a cache."""

from dataclasses import replace

import pytest

from flowos.model import Case, Measurement, Trust
from flowos.probes.fio import Fio

CACHED = "answers come after 1.2 us: a cache answers, not a device"


def measured(metric: str, workload: str, median: float, **levels: str) -> Measurement:
    usual = {"workload": workload, "iodepth": "16", "engine": "libaio", "direct": "yes"}
    return Measurement(
        case=Case(levels.pop("probe", "fio"), tuple({**usual, **levels}.items())),
        metric=metric,
        unit="?",
        count=1,
        median=median,
        low=median,
        high=median,
        best=median,
    )


def marks(*measurements: Measurement) -> list[tuple[str, ...]]:
    return [m.trust.marks for m in Fio().checked(measurements)]


READ = measured("bandwidth", "sequential read", 1.5e9)
FAST_WRITE = measured("bandwidth", "sequential write", 3.9e9)
QUICK = measured("latency_p50", "random read", 1.2e-6, iodepth="1")


def test_a_plain_device_is_not_suspected() -> None:
    write = measured("bandwidth", "sequential write", 1.2e9)
    typical = measured("latency_p50", "random read", 5e-5, iodepth="1")
    assert marks(READ, write, typical) == [(), (), ()]


@pytest.mark.parametrize(("metric", "kind"), [("bandwidth", "sequential"), ("iops", "random")])
def test_writes_much_faster_than_reads_mean_a_write_cache(metric: str, kind: str) -> None:
    read, write = (measured(metric, f"{kind} {w}", v) for w, v in (("read", 1.5), ("write", 3.9)))
    said = "writes are 2.6 times as fast as reads: a write cache answers"
    assert marks(read, write) == [(), (said,)]


@pytest.mark.parametrize(("write", "marked"), [(2.6, False), (2.61, True)])
def test_writes_may_be_a_third_faster_than_reads_or_so(write: float, marked: bool) -> None:
    numbers = measured("iops", "random read", 2.0), measured("iops", "random write", write)
    assert [bool(each) for each in marks(*numbers)] == [False, marked]


@pytest.mark.parametrize(("seconds", "marked"), [(5e-6, False), (4.99e-6, True)])
def test_a_device_takes_five_microseconds(seconds: float, marked: bool) -> None:
    one = measured("latency_p50", "random read", seconds, iodepth="1")
    assert [bool(each) for each in marks(one)] == [marked]


def test_the_marks_from_before_stay() -> None:
    noted = replace(FAST_WRITE, trust=Trust(marks=("noise",)))
    assert marks(READ, noted)[1][0] == "noise"
    assert len(marks(READ, noted)[1]) == 2


def test_the_writes_of_a_mix_are_fewer_by_order_and_prove_nothing() -> None:
    assert marks(measured("iops", "mixed read", 1e3), measured("iops", "mixed write", 1e5)) == [
        (),
        (),
    ]


def test_writes_without_reads_beside_them_prove_nothing() -> None:
    assert marks(FAST_WRITE) == [()]


def test_answers_quicker_than_any_device_mean_a_cache_for_reads_of_that_kind() -> None:
    write = measured("bandwidth", "sequential write", 1e9)
    assert marks(QUICK, READ, write) == [(CACHED,), (CACHED,), ()]


@pytest.mark.parametrize("changed", [{"engine": "io_uring"}, {"env": "image@podman"}])
def test_numbers_that_were_reached_in_another_way_are_no_witnesses(changed: dict[str, str]) -> None:
    other = measured("bandwidth", "sequential write", 9e9, **changed)
    assert marks(QUICK, READ, other)[2] == ()
    assert marks(READ, measured("bandwidth", "sequential read", 1e9, **changed)) == [(), ()]


def test_other_probes_are_let_through() -> None:
    other = measured("bandwidth", "sequential write", 9e9, probe="mpi")
    assert Fio().checked((READ, other)) == (READ, other)
