"""The probe of kernels: asked for by name, bounded by STREAM where memory bounds, by GEMM."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath

import pytest

from flowos.model import Case, Exited, Facts, MeasurementRequest, Outcome, Tool, Unmeasured
from flowos.probes.kernels import NO_NUMPY, Kernels
from tests.unit.probes.conftest import H200

MakeNode = Callable[..., Facts]
BY_NAME = MeasurementRequest(probes=("kernels",))
NUMPY, CUPY = (
    Tool(name=name, version="2", path=PurePath("/opt/python3")) for name in ("numpy", "cupy")
)


def cases(facts: Facts) -> tuple[Case, ...]:
    found = Kernels().cases(facts, BY_NAME)
    assert not isinstance(found, Unmeasured)
    return found


def test_it_is_measured_by_name_where_a_python_has_numpy(node: MakeNode) -> None:
    with_numpy = replace(node(), tools=(NUMPY,))
    assert Kernels().cases(with_numpy, MeasurementRequest()) == ()
    assert Kernels().cases(node(), BY_NAME) == NO_NUMPY
    assert [case.level("device") for case in cases(with_numpy)] == ["cpu"]
    gpu = replace(with_numpy, cuda=(H200,))
    assert [case.level("device") for case in cases(gpu)] == ["cpu"]
    with_cupy = replace(gpu, tools=(NUMPY, CUPY))
    assert [case.level("device") for case in cases(with_cupy)] == ["cpu", "0"]
    assert [case.level("device") for case in cases(replace(gpu, tools=(CUPY,)))] == ["0"]


@pytest.mark.parametrize(
    ("levels", "bound"),
    [
        ({"kernel": "gemm", "type": "f64", "n": "256"}, "gemm cores=4 type=f64"),
        ({"kernel": "merge", "type": "i64", "n": "33554432"}, "stream metric=copy threads=1"),
        ({"kernel": "merge", "type": "i32", "n": "33554432"}, ""),
        ({"kernel": "merge", "type": "i64", "n": "65536"}, ""),
        ({"kernel": "merge"}, ""),
    ],
)
def test_memory_bounds_what_is_larger_than_the_caches(
    levels: dict[str, str], bound: str, node: MakeNode
) -> None:
    (case,) = cases(replace(node(sockets=2, cores=2), tools=(NUMPY,)))
    ceiling = Kernels().ceiling(case.at(**levels))
    assert (ceiling.label if ceiling else "") == bound


def test_gpus_are_bounded_by_their_own(node: MakeNode) -> None:
    (case,) = cases(replace(node(), cuda=(H200,), tools=(CUPY,)))
    large = Kernels().ceiling(case.at(kernel="sort", type="f64", n=str(1 << 27)))
    assert large is not None
    assert large.label == "gpu_stream device=0 kernel=copy"
    product = Kernels().ceiling(case.at(kernel="gemm", type="f32", n="256"))
    assert product is not None
    assert product.label == "gpu_gemm type=f32"


def test_the_programs_own_words_are_the_reason() -> None:
    ended = Outcome(end=Exited(1), stderr=b"kernels: sort of 5 elements of f64\n")
    found = Kernels().read(Case("kernels"), ended)
    assert found == Unmeasured(reason="sort of 5 elements of f64")
