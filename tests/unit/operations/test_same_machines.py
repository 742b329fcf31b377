"""What is said of deployments of one pool, one after the other."""

from dataclasses import replace

from flowos.model import DeployedNode, Deployment
from flowos.operations.deployments import compared_deployments
from flowos.report import Report
from tests.unit.operations.test_case_order import RUN


def of(number: int, *booted: str) -> Report:
    nodes = tuple(DeployedNode(name=f"n{n}", booted=at) for n, at in enumerate(booted))
    where = Deployment(of="d", number=number, pool="p", nodes=nodes)
    return Report(run=replace(RUN, id=f"r{number}", deployment=where))


def test_machines_that_are_had_again_are_named_although_slurm_says_another_second() -> None:
    first = of(1, "2026-11-29T18:31:36", "2026-11-29T18:31:36")
    again = of(2, "2026-11-29T18:31:35", "2026-11-29T18:31:36")
    new = of(3, "2026-11-29T18:31:36", "2026-11-29T19:31:36")
    fewer = of(4, "2026-11-29T18:31:36")
    (note,) = compared_deployments([first, again, new, fewer]).notes
    assert note.startswith("deployment 2 got the machines of deployment 1: give --between SECONDS")
