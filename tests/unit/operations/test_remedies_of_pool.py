"""What a report says to measure anew is measured on the nodes that the run was on."""

from dataclasses import replace

import pytest

from flowos.model import Case, DeployedNode, Deployment, MeasurementRequest, Sample
from flowos.operations.measure import report_of
from tests.unit.operations.test_case_order import RUN

ON_A_NODE = Deployment(of="d", number=1, pool="hpc", nodes=(DeployedNode(name="n1"),))


@pytest.mark.parametrize(
    ("deployment", "there"), [(None, ""), (ON_A_NODE, " --pool hpc --nodes 1")]
)
def test_sizes_that_were_left_out_are_measured_there(
    deployment: Deployment | None, there: str
) -> None:
    run = replace(
        RUN, request=MeasurementRequest(probes=("hpl",)), deployment=deployment, unmeasured=()
    )
    levels = (("cores", "8"), ("solver", "numpy"), ("n", "1000"))
    details = (("sizes", "1000,2000"), ("seconds", "3"), ("memory", "64000000000"))
    case = Case("hpl", levels, details)
    sample = Sample(
        run=run.id, case=case, round=1, metric="flops", unit="flop/s", values=(1e9, 1e9)
    )
    ((_, why),) = report_of(run, [sample]).run.unmeasured
    assert why.remedy == f"flowos measure --full --only flops,hpl{there}"
