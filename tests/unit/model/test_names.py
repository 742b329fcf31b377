"""Names that are misspelt."""

import pytest

from flowos.model import did_you_mean


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("streem", "; did you mean 'stream'?"),
        ("streams_", "; did you mean 'streams'?"),
        ("xyz", ""),
    ],
)
def test_of_several_names_alike_the_most_alike_is_named(given: str, says: str) -> None:
    assert did_you_mean(given, ["streams", "gemm", "stream"]) == says
