"""Ranks of a measuring program are on as many nodes of a deployment as it says."""

from pathlib import Path

from flowos.engine import HeldSlice, Provider, SliceOptions
from flowos.model import Ask, Exited, Facts
from flowos.operations.measure._environments import bare_on
from flowos.probes import Program

from .test_slurm_gangs import hello, provider  # noqa: F401 - fixtures

NOWHERE = Facts(
    host="h", system="s", kernel="k", architecture="a", cpu_model="c", cpus=(), allowed=()
)


def test_ranks_are_spread_evenly_over_the_nodes_of_a_case(
    provider: Provider,  # noqa: F811
    hello: Path,  # noqa: F811
) -> None:
    said = {}
    with HeldSlice(provider, Ask(nodes=2), SliceOptions()) as held:
        first, _ = held.held.nodes
        place = bare_on(first, NOWHERE, first.folder(), first.folder(), nodes=2)
        for nodes in (1, 2):
            program = Program(argv=(), ranks=2 * nodes, nodes=nodes, mpi_family="mpich")
            outcome = place.run((str(hello / "mpich"),), program)
            assert outcome.end == Exited(0), outcome
            said[nodes] = sorted(outcome.stdout.decode().splitlines())
    assert said[1] == ["0 of 2 on n1, sum 1", "1 of 2 on n1, sum 1"]
    assert said[2] == [
        f"{rank} of 4 on {node}, sum 6" for rank, node in enumerate(("n1", "n1", "n2", "n2"))
    ]
