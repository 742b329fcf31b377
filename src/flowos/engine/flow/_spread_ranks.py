"""Ranks of one task on several nodes of a slice: which nodes, and their cores.

A stage whose ranks are spread takes nothing of its node by itself. Its lane takes what the ranks on
each node need, node after node in the order of their names: two gangs never wait for each other,
and nothing else waits while it holds cores.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from flowos._dataclasses import replace
from flowos.engine._ledger import granted, lacking_devices
from flowos.engine._node import Node
from flowos.engine.launch._end_reasons import step_words
from flowos.model import (
    Cancelled,
    DeviceNumbers,
    Environment,
    Exited,
    Gang,
    Killed,
    LaunchFailed,
    Needs,
    NotStarted,
    Outcome,
    SliceRefused,
    TaskFailed,
    WorkerLost,
)
from flowos.plan import Schedule, Stage, spread, with_needs


def with_spread_ranks(schedule: Schedule, node: Node, cores: int) -> Schedule:
    """The same; stages whose ranks are on several nodes say on how many.

    cores: that are held of each node. Raises SliceRefused if there is no room for all ranks.
    """
    others = node.neighbours()

    def needs_of(stage: Stage) -> Needs:
        if not isinstance(stage.steps[0].task.body, Gang):
            if stage.needs.nodes is not None:
                raise SliceRefused(
                    f"slice: task {stage.label!r} asks for nodes={stage.needs.nodes}, over which "
                    "only ranks of an MPI program are spread: see fo.gang"
                )
            return stage.needs
        has = [cores, *(min(cores, _cores_for(stage.needs, other)) for other in others)]
        return _spread(stage, has)

    return with_needs(schedule, needs_of)


def refuse_ranks(schedule: Schedule, node: Node, env: Environment) -> None:
    """Raises SliceRefused or EnvironmentRefused if another node starts no ranks of a task's MPI.

    This one asks when it starts them: a mpirun may be made by a task before.
    """
    for stage in schedule.all_stages:
        body = stage.steps[0].task.body
        if isinstance(body, Gang) and not node.is_here:
            try:
                command = body.command
                variables = node.variables(env, command.variables, inherit=command.inherit)
                node.check_mpi(env, body.mpi, body.mpirun, variables)
            except LaunchFailed as error:
                raise SliceRefused(f"slice: task {stage.label!r}: {error}") from None


def _spread(stage: Stage, cores: Sequence[int]) -> Needs:
    needs = stage.needs
    found = spread(needs, cores)
    if isinstance(found, str):
        raise SliceRefused(f"slice: task {stage.label!r} needs {found}")
    return replace(needs, nodes=len(found[0]))


def _cores_for(needs: Needs, node: Node) -> int:
    """None of a node without the devices."""
    has = node.ledger.whole
    return 0 if lacking_devices(needs.generic_resources, has.devices) else len(has.cpus)


@contextmanager
def gang_nodes(
    label: str, needs: Needs, node: Node, stopped: Callable[[], bool]
) -> Iterator[Mapping[Node, DeviceNumbers]]:
    """The nodes of the ranks, `node` first, whose cores are taken until the end.

    With the devices that were taken of each; none of the one that its stage took them of.

    Raises TaskFailed if too few are left; Cancelled once `stopped` says so.
    """
    if (needs.nodes or 1) == 1:
        yield {node: ()}
        return
    each = -(-needs.ranks // (needs.nodes or 1)) * needs.cores
    others = sorted(node.neighbours(), key=lambda other: len(other.ledger.idle) < each)
    nodes = (node, *others)
    found = spread(needs, [_cores_for(needs, other) for other in nodes])
    if isinstance(found, str):
        raise TaskFailed(f"task {label!r} needs {found}")
    places, ranks = found
    share = replace(needs, ranks=ranks, nodes=None)

    def check() -> None:
        if stopped():
            raise Cancelled("stopped while its ranks waited for cores")

    chosen: dict[Node, DeviceNumbers] = {nodes[i]: () for i in places}
    with ExitStack() as held:
        for other in sorted(chosen, key=lambda other: other.name):
            chosen[other] = held.enter_context(granted(other.ledger, share, check)).devices
        yield chosen


def refuse_lost(label: str, nodes: Sequence[Node], outcome: Outcome, step: str = "") -> None:
    """Raises WorkerLost if it ended so because one of its nodes is lost. step: of Slurm."""
    by_itself = isinstance(outcome.end, (Exited, NotStarted)) and len(nodes) == 1
    over_limit = isinstance(outcome.end, Killed) and outcome.end.by == "limit"
    if outcome.ok or by_itself or over_limit:
        return
    for node in nodes:
        if why := node.why_unreachable():
            lost = WorkerLost(f"task {label!r}: its command is gone{why}{step_words(step)}")
            lost.node = node.name
            raise lost
