"""Names that are misspelt."""

import pytest

from flowos.model import counted, did_you_mean


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("streem", "; did you mean 'stream'?"),
        ("streams_", "; did you mean 'streams'?"),
        ("GEMM", "; did you mean 'gemm'?"),
        ("xyz", ""),
    ],
)
def test_of_several_names_alike_the_most_alike_is_named(given: str, says: str) -> None:
    assert did_you_mean(given, ["streams", "gemm", "stream"]) == says


def test_counts_have_one_form_for_one() -> None:
    assert [counted(n, "node") for n in (0, 1, 2)] == ["0 nodes", "1 node", "2 nodes"]
