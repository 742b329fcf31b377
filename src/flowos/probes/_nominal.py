"""What data sheets promise: clock x width x pipes, channels x rate. Beside what was measured."""

from collections.abc import Callable

from flowos.model import Case, Facts, Wanted
from flowos.probes._cores import counted
from flowos.probes.stream import CACHES_PER_ARRAY, last_cache_bytes

VECTOR_BITS = {"sse4.2": 128, "avx": 256, "avx2": 256, "avx512f": 512, "neon": 128}
"""SVE is missing: its width differs from machine to machine."""

TYPE_BITS = {"f32": 32, "f64": 64}
PIPES = 2
"""Vector units per core that multiply and add, as in most server cores since 2013. CPUID does not
tell; where a core has one or four, the measured ceiling is the one to trust."""

FLOP_PROBES = ("flops", "gemm")
MEMORY_PROBES = ("working_set", "stream")


def nominal_flops(clock_hz: float, isa: str, type_: str, cores: int) -> float | None:
    """clock x lanes x 2 x pipes x cores in flop/s, as seed 001, section 3.1; None for no width."""
    bits = VECTOR_BITS.get(isa)
    if bits is None or type_ not in TYPE_BITS:
        return None
    return clock_hz * (bits // TYPE_BITS[type_]) * 2 * PIPES * cores


def nominal_of(facts: Facts, _wanted: Wanted) -> Callable[[Case, str], tuple[str, float] | None]:
    """For a case and its unit: name and value of the nominal ceiling, or None.

    The facts hold the clock and the memory's speed, also those that the person gave.
    """
    clock_hz = min((cpu.nominal_hz for cpu in facts.usable if cpu.nominal_hz), default=0.0)
    memory = facts.memory.bytes_per_second
    beyond = CACHES_PER_ARRAY * last_cache_bytes(facts)

    def nominal(case: Case, unit: str) -> tuple[str, float] | None:
        if unit == "flop/s" and case.probe in FLOP_PROBES and clock_hz:
            return _flops_of(case, clock_hz)
        if unit == "byte/s" and case.probe in MEMORY_PROBES and memory:
            in_memory = int(case.level("bytes", str(beyond))) >= beyond
            return ("memory, nominal", memory) if in_memory else None
        return None

    return nominal


def _flops_of(case: Case, clock_hz: float) -> tuple[str, float] | None:
    isa = case.detail("widest") if case.level("isa") == "default" else case.level("isa")
    cores = case.level("cores", "1")
    value = nominal_flops(clock_hz, isa, case.level("type"), int(cores))
    if value is None:
        return None
    return f"{clock_hz / 1e9:.2f} GHz x {isa} x {PIPES} pipes x {counted(cores, 'core')}", value
