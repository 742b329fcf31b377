"""Nominal values of data sheets: clock x width x pipes, channels x rate."""

from collections.abc import Callable

from flowos.model import Case, Facts
from flowos.probes._arrays import CACHES_PER_ARRAY, last_cache_bytes

VECTOR_BITS = {"sse4.2": 128, "avx": 256, "avx2": 256, "avx512f": 512, "neon": 128}
"""SVE is missing: its width differs from machine to machine."""

TYPE_BITS = {"f32": 32, "f64": 64}
PIPES = 2
"""Vector units per core that multiply and add, as in most server cores since 2013. CPUID does not
report it; for a core with one or four, trust the measured ceiling."""

AMX_OPERATIONS = {"amx_int8": 2048, "amx_bf16": 1024}
"""In a cycle of a core. Intel's brief "Accelerate Artificial Intelligence (AI) Workloads with Intel
Advanced Matrix Extensions" says so of Xeons of the 4th generation, the first with AMX."""

Nominal = Callable[[Case, str, Facts], tuple[str, float] | None]
"""(case, unit, facts) -> name and value, or None."""


def no_nominal(_case: Case, _unit: str, _facts: Facts) -> None:
    """No data sheet is known."""


def nominal_flops(clock_hz: float, isa: str, type_: str, cores: int) -> float | None:
    """clock x lanes x 2 x pipes x cores in flop/s or op/s; None for an unknown width."""
    if isa in AMX_OPERATIONS:
        return clock_hz * AMX_OPERATIONS[isa] * cores
    bits = VECTOR_BITS.get(isa)
    if bits is None or type_ not in TYPE_BITS:
        return None
    return clock_hz * bits / TYPE_BITS[type_] * 2 * PIPES * cores


def nominal_arithmetic(case: Case, unit: str, facts: Facts) -> tuple[str, float] | None:
    """Name and value for a rate of operations, if clock and vector width are known."""
    clock_hz = min((cpu.nominal_hz for cpu in facts.usable if cpu.nominal_hz), default=0.0)
    isa = case.detail("widest") if case.level("isa") == "default" else case.level("isa")
    cores = case.level("cores", "1")
    value = nominal_flops(clock_hz, isa, case.level("type"), int(cores))
    if unit not in ("flop/s", "op/s") or not value:
        return None
    on = "1 core" if cores == "1" else f"{cores} cores"
    per_cycle = f"{AMX_OPERATIONS[isa]} op" if isa in AMX_OPERATIONS else f"{PIPES} pipes"
    return f"{clock_hz / 1e9:.2f} GHz x {isa} x {per_cycle} x {on}", value


def nominal_memory(case: Case, unit: str, facts: Facts) -> tuple[str, float] | None:
    """Name and value for a rate of bytes from memory, if its speed is known."""
    rate = facts.memory.bytes_per_second
    beyond = CACHES_PER_ARRAY * last_cache_bytes(facts)
    in_memory = int(case.level("bytes", str(beyond))) >= beyond
    return ("memory, nominal", rate) if unit == "byte/s" and rate and in_memory else None
