"""A node as facts, for the tests of probes."""

from collections.abc import Callable, Sequence
from pathlib import PurePath

import pytest

from flowos.model import Blas, Cache, Compiler, CudaDevice, Facts, LogicalCpu

GCC = Compiler(
    name="gcc", family="gcc", language="c", version="12.2.0", path=PurePath("/usr/bin/gcc")
)
X86 = ("sse4.2", "avx", "avx2", "avx512f")
H200 = CudaDevice(
    number=0,
    name="NVIDIA H200",
    memory_bytes=150109880320,
    multiprocessors=132,
    clock_hz=1.98e9,
    memory_clock_hz=3.201e9,
    bus_bits=6016,
    cache_bytes=62914560,
    capability=(9, 0),
)
"""As its driver describes it."""


@pytest.fixture
def node() -> Callable[..., Facts]:
    """node(sockets=1, cores=2, ...): the facts of such a node, with gcc and AVX-512."""
    return make_node


def make_node(  # noqa: PLR0913 - what the tests vary
    sockets: int = 1,
    cores: int = 2,
    *,
    compilers: tuple[Compiler, ...] = (GCC,),
    blas: tuple[Blas, ...] = (),
    instruction_sets: tuple[str, ...] = X86,
    cpu_model: str = "AMD EPYC",
    quota_cpus: float | None = None,
    memory_bytes: int = 64 << 30,
    l3_bytes: int = 32 << 20,
    nominal_hz: float | None = None,
    efficiency: Sequence[int] = (),
) -> Facts:
    """`cores` in each socket, numbered socket by socket, one L3 for each socket."""
    numbers = range(sockets * cores)
    return Facts(
        host="node",
        system="Debian 12",
        kernel="6.1",
        architecture="x86_64",
        cpu_model=cpu_model,
        cpus=tuple(
            LogicalCpu(
                number=n,
                core=n,
                socket=n // cores,
                node=n // cores,
                kind="efficiency" if n in efficiency else "performance" if efficiency else "",
                nominal_hz=nominal_hz,
            )
            for n in numbers
        ),
        allowed=tuple(numbers),
        quota_cpus=quota_cpus,
        memory_bytes=memory_bytes,
        caches=tuple(
            Cache(
                level=3,
                kind="unified",
                size_bytes=l3_bytes,
                line_bytes=64,
                cpus=tuple(range(s * cores, (s + 1) * cores)),
            )
            for s in range(sockets)
        ),
        instruction_sets=instruction_sets,
        compilers=compilers,
        blas=blas,
    )
