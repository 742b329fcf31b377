"""What of a node may be used: cores and memory."""

from dataclasses import replace

import pytest

from flowos.model import CudaDevice, Facts, LogicalCpu


def thread(number: int, core: int) -> LogicalCpu:
    return LogicalCpu(number=number, core=core, socket=0, node=0)


FACTS = Facts(
    host="h",
    system="s",
    kernel="k",
    architecture="a",
    cpu_model="c",
    cpus=tuple(thread(number, core) for number, core in ((3, 1), (1, 1), (2, 0), (0, 0))),
    allowed=(0, 1, 2, 3),
)


def test_one_hardware_thread_of_each_core_is_its_first_that_may_be_used() -> None:
    assert FACTS.one_per_core == (thread(0, 0), thread(1, 1))
    assert replace(FACTS, allowed=(1, 2, 3)).one_per_core == (thread(1, 1), thread(2, 0))
    assert replace(FACTS, allowed=(3,)).usable == (thread(3, 1),)


@pytest.mark.parametrize(
    ("memory", "limit", "usable"),
    [(0, None, 0), (0, 0, 0), (8, None, 8), (8, 4, 4), (8, 16, 8), (0, 4, 4)],
)
def test_memory_is_what_there_is_or_less_and_0_where_it_is_not_known(
    memory: int, limit: int | None, usable: int
) -> None:
    facts = replace(FACTS, memory_bytes=memory, memory_limit_bytes=limit)
    assert facts.usable_memory_bytes == usable


def test_what_a_driver_does_not_say_of_a_gpu_is_0() -> None:
    gpu = CudaDevice(number=0, name="H200")
    assert {gpu.memory_bytes, gpu.multiprocessors, gpu.bus_bits, gpu.cache_bytes} == {0}
    assert (gpu.clock_hz, gpu.memory_clock_hz, gpu.capability) == (0.0, 0.0, (0, 0))
