"""Paths and variables of the host as seen by a launch in an image."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING

from flowos._dataclasses import replace
from flowos.model import Environment, Pairs

if TYPE_CHECKING:
    from flowos.drivers._cdi import Placed

SHARED = ("/tmp", "/dev", "/proc", "/sys")
"""Folders of the host that every environment has under the same name."""

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""For an image that sets none."""

LET_THROUGH = frozenset(
    {"CUDA_VISIBLE_DEVICES", "TERM", "COLORTERM", "NO_COLOR", "TZ", "USER", "LOGNAME"}
)
LET_THROUGH_PREFIXES = ("PMI", "OMPI_", "SLURM_", "MPI", "OMP_", "UCX_", "NCCL_", "FI_")
"""Variables that identify a rank or tune MPI, OpenMP and the network."""


def source_and_target(bind: tuple[str, str]) -> tuple[PurePath, PurePath]:
    source, target = bind
    return PurePath(source), PurePath(target.removesuffix(":ro"))


def path_inside(path: PurePath, binds: Pairs) -> PurePath | None:
    """Path inside of an absolute path of the host; None if it is not visible there."""
    found: list[tuple[PurePath, PurePath]] = [
        (source, target)
        for source, target in map(source_and_target, binds)
        if path.is_relative_to(source)
    ]
    if found:
        source, target = max(found, key=lambda pair: len(pair[0].parts))
        return target / path.relative_to(source)
    return path if any(path.is_relative_to(folder) for folder in SHARED) else None


def path_outside(path: PurePath, binds: Pairs) -> PurePath | None:
    """Path on the host of a path inside; None for the image's own files."""
    turned = tuple((str(t), str(s)) for s, t in map(source_and_target, binds))
    return path_inside(path, turned)


def variables_inside(
    env: Environment, *, own: Pairs, host: Mapping[str, str], task: Pairs, inherit: bool = True
) -> Pairs:
    """All variables of a command in an image; later sources override earlier ones.

    Order: the image's, FlowOS's own, those of the host that pass the filter (if the command
    inherits them), the environment's, the task's.
    """
    image = env.image.config.variables if env.image else ()
    let_through = [(n, v) for n, v in host.items() if inherit and _passes(n, v, env.binds)]
    merged = {"PATH": DEFAULT_PATH}
    for pairs in (image, own, let_through, env.variables, task):
        merged |= dict(pairs)
    return tuple(merged.items())


def with_devices(env: Environment, placed: "Placed", at: PurePath) -> Environment:
    """The environment with its devices as binds and variables; `at` as in `place_devices`."""
    config = dict(env.image.config.variables) if env.image else {}
    own = dict(placed.variables) | dict(env.variables)
    known = config | own
    if placed.libraries:
        path = known.get("LD_LIBRARY_PATH")
        own["LD_LIBRARY_PATH"] = f"{at / 'lib'}:{path}" if path else str(at / "lib")
    if placed.programs:
        own["PATH"] = f"{known.get('PATH', DEFAULT_PATH)}:{at / 'bin'}"
    binds = (*env.binds, *placed.binds)
    return replace(env, binds=binds, variables=tuple(own.items()), devices=())


def _passes(name: str, value: str, binds: Pairs) -> bool:
    if name == "TMPDIR":
        return path_inside(PurePath(value), binds) is not None
    return name in LET_THROUGH or name.startswith(LET_THROUGH_PREFIXES)
