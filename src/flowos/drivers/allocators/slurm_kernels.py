"""Nodes that Slurm boots into a kernel: a feature that its helpers plugin changes.

A job with `--constraint=KERNEL` gets nodes that have it as a feature, and waits, CONFIGURING, until
those that had another one active are booted. Tested with Slurm 22.05.
"""

from collections.abc import Mapping, Sequence

from flowos._dataclasses import dataclass
from flowos.drivers._allocators import nearest
from flowos.drivers._slurm_values import read_hosts
from flowos.model import Argv, Ask, Pool, counted

PLUGIN = "node_features/helpers"
_OPERATORS = "[]()|*"
_BOOTS = "#"
_FEATURES, _STATES = "%N|%f|%b", "%N|%T|%E"


@dataclass(frozen=True, kw_only=True)
class NodeFeatures:
    """Of a node: those that it may have, and those that it has now."""

    available: tuple[str, ...]
    active: tuple[str, ...]


def features_words(partition: str = "") -> Argv:
    """Of all partitions without a name: a node comes once for each."""
    which = (f"--partition={partition}",) * bool(partition)
    return ("sinfo", "--noheader", "--Node", *which, f"--format={_FEATURES}")


def booting_words(job_name: str) -> Argv:
    """Ask for the nodes of a job that gets them ready."""
    return ("squeue", "--noheader", f"--name={job_name}", "--states=CONFIGURING", "--format=%N")


def states_words(nodes: Sequence[str]) -> Argv:
    names = ",".join(nodes)
    return ("sinfo", "--noheader", "--Node", f"--nodes={names}", f"--format={_STATES}")


def read_features(text: str) -> Mapping[str, NodeFeatures]:
    """Of `features_words`, by name."""
    rows = (line.split("|") for line in text.splitlines())
    return {
        name: NodeFeatures(available=_listed(available), active=_listed(active))
        for names, available, active in (row for row in rows if len(row) == 3)
        for name in read_hosts(names)
    }


def read_booting(text: str) -> tuple[str, ...]:
    """Of `booting_words`."""
    return tuple(name for line in text.splitlines() for name in read_hosts(line))


def read_booted(text: str) -> tuple[str, ...]:
    """Of `states_words`: those that are booted just now."""
    return tuple(dict.fromkeys(name for name, state, _ in _states(text) if state.endswith(_BOOTS)))


def read_down(text: str) -> tuple[tuple[str, str], ...]:
    """Of `states_words`: those that are down, and why."""
    down = ((name, why) for name, state, why in _states(text) if state.startswith("down"))
    return tuple(dict.fromkeys(down))


def refusal_of_kernel(pool: Pool, ask: Ask, nodes: Mapping[str, NodeFeatures], boots: bool) -> str:
    """Why nodes of these cannot be booted into what is asked for, or "". boots: Slurm does."""
    kernel = ask.kernel
    if not kernel:
        return ""
    if not boots:
        return (
            f"kernel {kernel!r}: this Slurm boots its nodes into no kernel: it has no "
            f"NodeFeaturesPlugins={PLUGIN}"
        )
    if any(operator in pool.constraint for operator in _OPERATORS):
        return (
            f"kernel {kernel!r}: next to it Slurm takes no constraint with one of {_OPERATORS}, as "
            f"{pool.constraint!r}"
        )
    have = [name for name, features in nodes.items() if kernel in features.available]
    if not have:
        names = sorted({name for features in nodes.values() for name in features.available})
        known = nearest(kernel, names) or f"they have {', '.join(names) or 'none'}"
        return f"no node has a kernel {kernel!r}; {known}"
    if len(have) < ask.nodes:
        which = f"{len(have)} of {len(nodes)} have it: {', '.join(have)}"
        return f"{counted(ask.nodes, 'node')} with kernel {kernel!r} asked for, {which}"
    return ""


def refusal_of_running(ask: Ask, nodes: Mapping[str, NodeFeatures], job: str) -> str:
    """Why nodes of a job that runs are not as asked for, or "": they are not booted any more."""
    others = [name for name, features in nodes.items() if ask.kernel not in features.active]
    if not ask.kernel or not others:
        return ""
    return (
        f"kernel {ask.kernel!r}: {', '.join(others)} of job {job} around this program did not boot "
        f"it; ask for it by sbatch --constraint={ask.kernel}"
    )


def _listed(text: str) -> tuple[str, ...]:
    return () if text in ("(null)", "") else tuple(text.split(","))


def _states(text: str) -> list[tuple[str, str, str]]:
    rows = (line.split("|", 2) for line in text.splitlines())
    found = ((names, state, why) for names, state, why in (row for row in rows if len(row) == 3))
    return [(name, state, why) for names, state, why in found for name in read_hosts(names)]
