"""PyTorch is that of each environment's own Python, where others have the same binary in all."""

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath

import pytest

from flowos.engine import here
from flowos.model import Environment, MeasurementRequest, Progress, Unmeasured
from flowos.operations._facts import facts
from flowos.operations.environment import environment
from flowos.operations.measure._prepare import ReadyRun, ready_run
from tests.cluster.python_image import OURS, make_python_image

from .conftest import Images

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="pip install torch"
)


@contextmanager
def ready(image: Environment, scratch: Path, *probes: str) -> Iterator[ReadyRun]:
    """Bare and this image, by the same binary."""
    request = MeasurementRequest(probes=probes, effort="quick", scratch=PurePath(scratch))
    asked = (("bare", environment("bare")), ("image", image))

    def on_progress(_: Progress) -> None:
        pass

    with ready_run(request, facts(request), here(), asked, on_progress) as found:
        yield found


def test_products_are_measured_by_the_python_inside(tmp_path: Path) -> None:
    made = make_python_image(tmp_path / "python")
    binds = (*OURS, (sys.prefix, sys.prefix))
    image = environment(f"{made}@bwrap", binds=binds, variables={"PATH": f"{sys.prefix}/bin:/bin"})
    with ready(image, tmp_path, "gpu_gemm") as found:
        assert not found.plan.unmeasured
        (comparison,) = found.plan.comparisons
        bare, inside = comparison.entries
        assert bare.case.at(env="") == inside.case.at(env="")
        answer = inside.read()
    assert not isinstance(answer, Unmeasured), answer
    readings, _ = answer
    assert {"f64", "f32"} <= {dict(each.levels)["type"] for each in readings}


def test_an_image_without_python_is_said_once_for_each_case(images: Images, tmp_path: Path) -> None:
    image = environment(f"{images.squashfs}@bwrap")
    with ready(image, tmp_path, "gpu_gemm", "collectives", "stream") as found:
        said = [(case.probe, why) for case, why in found.plan.unmeasured]
        assert [name for name, _ in said] == ["gpu_gemm", "collectives"]
        assert all("python3" in why.remedy and "--binary" not in why.remedy for _, why in said)
        assert {each.probe.name for each in found.plan.comparisons} == {"stream"}
