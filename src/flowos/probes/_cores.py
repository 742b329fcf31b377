"""Sets of cpus that ceilings and libraries are measured on, and a case's details for its build."""

from flowos.model import Argv, Case, Compiler, Facts, LogicalCpu, Pairs, Unmeasured
from flowos.probes._build import Build

NO_COMPILER = Unmeasured(
    reason="no C compiler was found, and this program is compiled where it measures",
    remedy="apt install gcc libc6-dev",
)


def core_sets(facts: Facts) -> tuple[tuple[int, ...], ...]:
    """The cpus (one per core) of one core, of one socket and of all; equal sets once.

    Performance cores come first. A cgroup quota of 1.5 cpus allows one busy thread.
    """
    cores = sorted(facts.one_per_core, key=lambda cpu: (cpu.kind == "efficiency", cpu.number))
    if facts.quota_cpus is not None:
        cores = cores[: max(1, int(facts.quota_cpus))]
    socket = [cpu for cpu in cores if cpu.socket == cores[0].socket]
    return tuple(dict.fromkeys(_numbers(some) for some in (cores[:1], socket, cores) if some))


def _numbers(cpus: list[LogicalCpu]) -> tuple[int, ...]:
    return tuple(cpu.number for cpu in cpus)


def list_of(cpus: tuple[int, ...]) -> str:
    """The list in the format of the programs: 0,1,2."""
    return ",".join(map(str, cpus))


def on_cores(
    probe: str, compiler: Compiler, cpus: tuple[int, ...], levels: Pairs = (), details: Pairs = ()
) -> Case:
    """A case on these cpus: axis `cores` is their number, `levels` follow it."""
    return Case(
        probe,
        levels=(("cores", str(len(cpus))), *levels),
        details=(("cpus", list_of(cpus)), *remembered(compiler), *details),
    )


def remembered(compiler: Compiler) -> Pairs:
    """Details of a case for `build_for`."""
    return (("compiler", str(compiler.path)), ("compiler_version", compiler.version))


def build_for(case: Case, source: str, flags: Argv, libraries: Argv = ()) -> Build:
    """The build with the compiler in the case's details."""
    return Build(
        source=source,
        compiler=case.detail("compiler"),
        compiler_version=case.detail("compiler_version"),
        flags=flags,
        libraries=libraries,
    )


def options_of(case: Case, *names: str) -> Argv:
    """Those details of a case as options of its program: --per-octave 2."""
    pairs = ((f"--{name.replace('_', '-')}", case.detail(name)) for name in names)
    return tuple(word for pair in pairs for word in pair)


def native_flag(facts: Facts) -> str:
    """The compiler's flag for all instructions that this processor has."""
    return "-mcpu=native" if facts.architecture == "aarch64" else "-march=native"


def library_threads(number: str) -> Pairs:
    """Variables by which BLAS libraries take this number of threads."""
    names = ("OMP", "OPENBLAS", "BLIS", "MKL")
    return (*((f"{name}_NUM_THREADS", number) for name in names), ("MKL_DYNAMIC", "FALSE"))


def counted(number: str, noun: str) -> str:
    return f"{number} {noun}" if number == "1" else f"{number} {noun}s"


def doubled(highest: int) -> tuple[int, ...]:
    """1, 2, 4 .. highest."""
    return tuple(sorted({2**i for i in range(highest.bit_length())} | {highest}))
