"""What probes of storage have in common: room for their files, direct I/O, clients on nodes."""

from flowos.model import Argv, Case, Facts, Pairs, Unmeasured
from flowos.probes._base import Program, best_compiler
from flowos.probes._cores import NO_COMPILER, build_for, options_of, remembered

IN_MEMORY = ("tmpfs", "ramfs")
STEP_BYTES = 1 << 20
NO_MPI = Unmeasured(
    reason="no MPI with a compiler and an mpirun was found",
    remedy="apt install openmpi-bin libopenmpi-dev",
)
MORE_ROOM = "free some space, or choose another folder with --scratch"


def room_bytes(facts: Facts, size_bytes: int, share: int) -> int:
    """Whole MiB of this size that fit: into a `share`-th of the free space, and of a file system in
    memory into a quarter of the memory.
    """
    room = facts.storage.free_bytes
    size = size_bytes if room is None else min(size_bytes, room // share)
    if facts.storage.file_system in IN_MEMORY:
        size = min(size, facts.usable_memory_bytes // 4)
    return size // STEP_BYTES * STEP_BYTES


def direct_io(facts: Facts) -> str:
    """The level of the axis direct: "yes", unless it was tried and refused."""
    works = {"direct I/O": True, **{t.name: t.works for t in facts.tried}}
    return "yes" if works["direct I/O"] else "no"


def in_memory(case: Case) -> str:
    """A reason to doubt it if the files of a case lie in memory; "" if not."""
    kind = case.detail("file_system")
    return f"the files lie in memory ({kind})" if kind in IN_MEMORY else ""


def built_by_of(facts: Facts, nodes: int) -> Pairs | Unmeasured:
    """Details of a case for `storage_program`: the compiler; between nodes that of the first MPI,
    whose ranks the clients then are.
    """
    if nodes == 1:
        compiler = best_compiler(facts)
        return NO_COMPILER if compiler is None else remembered(compiler)
    if not facts.mpis:
        return NO_MPI
    mpi = facts.mpis[0]
    return (
        ("compiler", str(mpi.compiler)),
        ("compiler_version", mpi.version),
        ("family", mpi.family),
        ("mpirun", str(mpi.mpirun)),
    )


def storage_program(case: Case, count_axis: str, options: Argv, limit_seconds: float) -> Program:
    """The program of the case's probe, by its levels as options.

    count_axis: of the number of clients. A level nodes: over which they are spread; of as many as
    clients by default. A detail stride: how far away the client of another node is.
    """
    levels = (
        word for axis, level in case.levels if axis != "nodes" for word in (f"--{axis}", level)
    )
    family, nodes = case.detail("family"), case.level("nodes")
    return Program(
        argv=(
            "--folder",
            "{scratch}",
            *levels,
            *options,
            *options_of(case, *("stride",) * bool(family)),
        ),
        build=build_for(case, f"{case.probe}.c", ("-O2", *("-DFLOWOS_MPI",) * bool(family))),
        ranks=int(case.level(count_axis)) if family else 1,
        nodes=int(nodes) if nodes else None,
        mpi_family=family,
        mpirun=case.detail("mpirun"),
        limit_seconds=limit_seconds,
    )
