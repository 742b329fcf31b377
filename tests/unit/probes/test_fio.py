import json
from pathlib import PurePath
from typing import Any

import pytest

from flowos.model import Exited, Facts, Outcome, Reading, Tool, Unmeasured, Wanted
from flowos.probes.fio import Fio, suspicions

PROBE = Fio()
FIO = Tool(name="fio", version="fio-3.33", path=PurePath("/usr/bin/fio"))


def facts(*tools: Tool) -> Facts:
    return Facts(
        host="n",
        system="Linux",
        kernel="6",
        architecture="x86_64",
        cpu_model="?",
        cpus=(),
        allowed=(),
        tools=tools,
    )


def reading(metric: str, workload: str, *values: float, **changed: str) -> Reading:
    """Of a plain device: `changed` sets levels, or the file system."""
    kind = changed.pop("file_system", "ext4")
    levels = {"workload": workload, "iodepth": "16", "engine": "libaio", "direct": "yes"}
    return Reading(
        metric=metric,
        unit="?",
        values=values,
        levels=tuple({**levels, **changed}.items()),
        notes=(("file_system", kind),),
    )


READ = reading("bandwidth", "sequential read", 1.5e9, 1.4e9, 1.5e9, 1.5e9)
SLOW_WRITE = reading("bandwidth", "sequential write", 1.2e9, 1.2e9, 1.2e9, 1.2e9)


def test_without_fio_it_says_what_to_install() -> None:
    found = PROBE.cases(facts(), Wanted())
    assert found == Unmeasured(reason="fio was not found", remedy="apt install fio")


def test_the_program_gets_the_scratch_folder_the_found_fio_and_its_time() -> None:
    found = PROBE.cases(facts(FIO), Wanted())
    assert not isinstance(found, Unmeasured)
    (case,) = found
    program = PROBE.program(case)
    interpreter, script, *words = program.argv
    assert interpreter == "python3"
    assert script.endswith("/programs/fio_run.py")
    options = dict(zip(words[::2], words[1::2], strict=True))
    assert options == {
        "--folder": "{scratch}",
        "--fio": "/usr/bin/fio",
        "--bytes": str(2 << 30),
        "--seconds": "1.5",
        "--engine": "auto",
    }
    assert program.build is None
    assert program.limit_seconds > 60 + PROBE.seconds(case)
    assert PROBE.ceiling(case) is None


def test_quick_ends_within_a_quarter_of_a_minute() -> None:
    found = PROBE.cases(facts(FIO), Wanted(effort="quick"))
    assert not isinstance(found, Unmeasured)
    assert PROBE.seconds(found[0]) < 18


def test_a_plain_device_is_not_suspected() -> None:
    quick = reading("latency_p50", "random read", 5e-5, iodepth="1")
    assert suspicions([READ, SLOW_WRITE, quick]) == ((), (), ())


def test_writes_much_faster_than_reads_mean_a_write_cache() -> None:
    fast = reading("bandwidth", "sequential write", 3.96e9, 3.9e9, 4e9, 3.96e9)
    of_read, of_write = suspicions([READ, fast])
    assert of_read == ()
    assert of_write == ("writes are 2.6 times as fast as reads: a write cache answers",)


def test_the_writes_of_a_mix_are_fewer_by_order_and_prove_nothing() -> None:
    mixed = [
        reading("iops", "mixed read", 1e3),
        reading("iops", "mixed write", 1e5),
    ]
    assert suspicions(mixed) == ((), ())


def test_writes_without_reads_beside_them_prove_nothing() -> None:
    assert suspicions([SLOW_WRITE]) == ((),)


def test_answers_quicker_than_any_device_mean_a_cache() -> None:
    quick = reading("latency_p50", "random read", 1.2e-6, iodepth="1")
    _, of_read = suspicions([quick, READ])
    assert of_read == ("answers come after 1.2 us: a cache answers, not a device",)


@pytest.mark.parametrize(
    ("values", "ratio"),
    [
        ((1e9, 1e9, 2e9, 2e9, 2e9), "2.00"),
        ((4e9, 4e9, 1e9, 1e9), "0.25"),
        ((0, 0, 1e9, 1e9), "1000.00"),
    ],
)
def test_halves_that_differ_mean_a_cache_that_filled_or_warmed_up(
    values: tuple[float, ...], ratio: str
) -> None:
    ((reason,),) = suspicions([reading("bandwidth", "sequential read", *values)])
    assert reason.startswith(f"the second half went at {ratio}")


def test_a_file_in_memory_is_said_whatever_direct_io_means_there() -> None:
    ((reason,),) = suspicions([reading("iops", "random read", 1e6, file_system="tmpfs")])
    assert reason == "the file lies in memory (tmpfs)"


def test_refused_direct_io_leaves_the_page_cache_to_answer() -> None:
    ((reason,),) = suspicions([reading("iops", "random read", 1e6, direct="no")])
    assert reason == "direct I/O is refused by ext4: the page cache answers"
    unknown = reading("iops", "random read", 1e6, direct="no", file_system="")
    assert suspicions([unknown])[0][0].startswith("direct I/O is refused by the file system")


def test_a_depth_that_synchronous_io_cannot_have_is_said() -> None:
    deep = reading("iops", "random read", 1e4, engine="psync")
    plain = reading("iops", "random read", 1e4, engine="psync", iodepth="1")
    assert suspicions([deep, plain]) == (
        ("only synchronous I/O works here: the depth was 1",),
        (),
    )


def outcome(*raw: dict[str, Any]) -> Outcome:
    return Outcome(end=Exited(0), stdout=json.dumps({"readings": raw}).encode())


def test_suspicions_are_noted_on_the_readings_they_belong_to() -> None:
    found = PROBE.cases(facts(FIO), Wanted())
    assert not isinstance(found, Unmeasured)
    both = [
        {"metric": "iops", "unit": "1/s", "values": [rate], "levels": {"workload": workload}}
        for workload, rate in (("random read", 1e4), ("random write", 9e4))
    ]
    readings = PROBE.read(found[0], outcome(*both))
    assert not isinstance(readings, Unmeasured)
    assert ["suspect" in dict(r.notes) for r in readings] == [False, True]


def test_a_refusal_is_passed_on_with_its_remedy() -> None:
    found = PROBE.cases(facts(FIO), Wanted())
    assert not isinstance(found, Unmeasured)
    said = json.dumps({"cannot": "/tmp has no room", "remedy": "--scratch DIR"}).encode()
    readings = PROBE.read(found[0], Outcome(end=Exited(77), stdout=said))
    assert readings == Unmeasured(reason="/tmp has no room", remedy="--scratch DIR")


def test_the_charts_draw_levels_that_the_program_sweeps() -> None:
    swept = {"workload", "iodepth", "engine", "direct"}
    for chart in PROBE.charts:
        assert {chart.x, *chart.series} <= swept
