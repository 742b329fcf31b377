"""What data sheets promise: clock x width x pipes, channels x rate. Beside what was measured."""

from collections.abc import Callable

from flowos.model import Case, Facts
from flowos.probes._arrays import CACHES_PER_ARRAY, last_cache_bytes

VECTOR_BITS = {"sse4.2": 128, "avx": 256, "avx2": 256, "avx512f": 512, "neon": 128}
"""SVE is missing: its width differs from machine to machine."""

TYPE_BITS = {"f32": 32, "f64": 64}
PIPES = 2
"""Vector units per core that multiply and add, as in most server cores since 2013. CPUID does not
tell; where a core has one or four, the measured ceiling is the one to trust."""


Nominal = Callable[[Case, str, Facts], tuple[str, float] | None]
"""For a case and a unit."""


def no_nominal(_case: Case, _unit: str, _facts: Facts) -> None:
    """No data sheet is known."""


def nominal_flops(clock_hz: float, isa: str, type_: str, cores: int) -> float | None:
    """clock x lanes x 2 x pipes x cores in flop/s, as seed 001, section 3.1; None for no width."""
    bits = VECTOR_BITS.get(isa)
    if bits is None or type_ not in TYPE_BITS:
        return None
    return clock_hz * (bits // TYPE_BITS[type_]) * 2 * PIPES * cores


def nominal_arithmetic(case: Case, unit: str, facts: Facts) -> tuple[str, float] | None:
    """Of a rate of operations: name and value, if the clock and the width of vectors are known."""
    clock_hz = min((cpu.nominal_hz for cpu in facts.usable if cpu.nominal_hz), default=0.0)
    isa = case.detail("widest") if case.level("isa") == "default" else case.level("isa")
    cores = case.level("cores", "1")
    value = nominal_flops(clock_hz, isa, case.level("type"), int(cores))
    if unit != "flop/s" or not value:
        return None
    on = "1 core" if cores == "1" else f"{cores} cores"
    return f"{clock_hz / 1e9:.2f} GHz x {isa} x {PIPES} pipes x {on}", value


def nominal_memory(case: Case, unit: str, facts: Facts) -> tuple[str, float] | None:
    """Of a rate of bytes that come from memory: name and value, if its speed is known."""
    rate = facts.memory.bytes_per_second
    beyond = CACHES_PER_ARRAY * last_cache_bytes(facts)
    in_memory = int(case.level("bytes", str(beyond))) >= beyond
    return ("memory, nominal", rate) if unit == "byte/s" and rate and in_memory else None
