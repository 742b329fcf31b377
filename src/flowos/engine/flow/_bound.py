"""Tasks that ask for cores get CPUs of their own, and variables that say to libraries how many.

Those that ask for devices get variables that say which.
"""

from collections.abc import Mapping

from flowos.model import CUDA, DeviceNumbers, Needs, Pairs
from flowos.plan import Schedule

_NAMES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
_ATTEMPT = "FLOWOS_ATTEMPT"


def is_bound(needs: Needs) -> bool:
    """Whoever is alone has the node, and sets what it measures."""
    return needs.binds and not needs.alone


def max_cores(schedule: Schedule) -> int | None:
    """The most that a Python task asks for; None if none does."""
    python = (stage.needs.choices for stage in schedule.all_stages if stage.in_python)
    each = (needs for choices in python for needs in choices)
    return max((needs.cores for needs in each if is_bound(needs)), default=None)


def seen_devices(needs: Needs, devices: DeviceNumbers) -> DeviceNumbers:
    """What a task has, and none of what it would have had with another choice."""
    if not needs.otherwise:
        return devices
    has = dict(devices)
    others = (name for each in needs.choices for name, _ in each.generic_resources)
    return (*devices, *((name, ()) for name in dict.fromkeys(others) if name not in has))


def device_variables(devices: Mapping[str, DeviceNumbers]) -> Pairs:
    """Which devices a task has, of each of its nodes: FLOWOS_DEVICES_FPGA=0,1.

    Where its nodes do not have the same ones: n1:0 n2:1. GPUs are said to CUDA too, which cannot
    tell nodes apart.
    """
    found = {node: dict(each) for node, each in devices.items()}
    names = dict.fromkeys(name for each in found.values() for name in each)
    said = {n: _numbers({at: each[n] for at, each in found.items()}) for n in names}
    gpus = said.get("gpu", " ")
    cuda = ((CUDA, gpus),) if " " not in gpus else ()
    return (*((_variable(name), numbers) for name, numbers in said.items()), *cuda)


def _variable(device: str) -> str:
    return f"FLOWOS_DEVICES_{device.upper().replace('-', '_')}"


def _numbers(at: Mapping[str, tuple[int | str, ...]]) -> str:
    words = {node: ",".join(map(str, numbers)) for node, numbers in at.items()}
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    return " ".join(f"{node}:{numbers}" for node, numbers in words.items())


def with_attempt(variables: Pairs, attempt: int) -> Pairs:
    """From the second one on; that of a task around this program is another one's."""
    own = tuple(pair for pair in variables if pair[0] != _ATTEMPT)
    return (*own, (_ATTEMPT, str(attempt))) if attempt > 1 else own


def with_threads(variables: Pairs, threads: int) -> Pairs:
    """What a person set stays; OMP_NUM_THREADS of theirs holds for the others too."""
    given = dict(variables)
    if _NAMES[0] in given:
        return variables
    return (*variables, *((name, str(threads)) for name in _NAMES if name not in given))
