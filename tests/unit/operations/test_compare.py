"""What of a run is compared along an axis."""

from flowos.model import Case, Sample
from flowos.operations.compare import _with_base


def sample(**levels: str) -> Sample:
    case = Case("gemm", tuple(levels.items()))
    return Sample(run="r", case=case, round=1, metric="flops", unit="flop/s", values=(1.0,))


def test_what_never_ran_at_the_base_is_not_compared() -> None:
    numpy = sample(library="numpy", isa="sse4.2"), sample(library="numpy", isa="avx2")
    blis = sample(library="blis", isa="avx2"), sample(library="blis", isa="default")
    assert _with_base((*numpy, *blis), "isa", "sse4.2") == numpy
    assert _with_base((*numpy, *blis), "library", "blis") == (numpy[1], *blis)
