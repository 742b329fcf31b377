"""The command that a remedy names is the person's own, with another time."""

from dataclasses import replace
from pathlib import PurePath
from typing import Any

import pytest

from flowos.model import DeployedNode, Deployment, MeasurementRequest, Run, SuiteStep
from flowos.operations.measure._own_command import own_command
from tests.unit.operations.test_case_order import RUN

TMP = PurePath("/var/tmp")
TABLE_A = SuiteStep(of="s-1", suite="cyclecloud", probe="mpi")


def run(**request: Any) -> Run:
    return replace(RUN, request=MeasurementRequest(**{"scratch": TMP, **request}))


@pytest.mark.parametrize(
    ("request_", "command"),
    [
        ({}, "measure --minutes 7"),
        (
            {"environments": ("bare", "mine"), "probes": ("stream",), "effort": "quick"},
            "measure --quick --env mine --only stream --minutes 7",
        ),
        (
            {"environments": ("a@bwrap", "b c"), "binary": "own", "emulated": True},
            "measure --env a@bwrap --env 'b c' --binary own --emulated --minutes 7",
        ),
        ({"environments": ("bare", "bare")}, "measure --env bare --env bare --minutes 7"),
        (
            {"scratch": PurePath("/s"), "nominal": (("x", 2.5),), "matrix": PurePath("/m.mtx")},
            "measure --minutes 7 --scratch /s --nominal x=2.5 --matrix /m.mtx",
        ),
        (
            {"commands": (("sleep", "1"),), "probes": ("command",), "ignore_failure": True},
            "measure --ignore-failure --minutes 7 -- sleep 1",
        ),
        (
            {"commands": (("a", "b c"), ("d",)), "effort": "quick"},
            "compare --command 'a '\"'\"'b c'\"'\"'' --command d --quick --minutes 7",
        ),
        ({"suite": TABLE_A, "effort": "full"}, "measure --full --suite cyclecloud --only "),
    ],
)
def test_it_has_what_was_asked_for(request_: dict[str, Any], command: str) -> None:
    assert own_command(run(**request_), 7).startswith(f"flowos {command}")


def test_a_part_of_a_suite_has_the_time_that_it_needs() -> None:
    assert (
        own_command(run(suite=TABLE_A), 7)
        == "flowos measure --suite cyclecloud --only 5,6,7,8,9,10"
    )


def test_nodes_of_a_pool_and_other_probes_are_named() -> None:
    nodes = tuple(DeployedNode(name=name) for name in "ab")
    where = replace(run(), deployment=Deployment(of="d", number=1, pool="p", nodes=nodes))
    said = own_command(where, 7, ("mpi",))
    assert said == "flowos measure --only mpi --minutes 7 --pool p --nodes 2"
