"""Labels as numbers."""

import pytest

from flowos.feeder._labels import numbered
from flowos.model import FeedError


def test_names_become_numbers_in_sorted_order() -> None:
    labels = numbered(["dog", "cat", "dog", "ant"])
    assert labels.classes == ("ant", "cat", "dog")
    assert labels.values is not None
    assert labels.values.tolist() == [2, 1, 2, 0]


def test_numbers_stay_what_they_are() -> None:
    whole, real = numbered([3, 1, True]), numbered([0.5, 2])
    assert whole.classes == real.classes == ()
    assert whole.values is not None
    assert real.values is not None
    assert (whole.values.dtype.name, whole.values.tolist()) == ("int64", [3, 1, 1])
    assert (real.values.dtype.name, real.values.tolist()) == ("float64", [0.5, 2.0])


def test_a_number_beyond_64_bits_is_refused() -> None:
    with pytest.raises(FeedError, match="does not fit into 64 bits"):
        numbered([1, 1 << 63])


@pytest.mark.parametrize("given", [[None], ["a", 1], [b"a"]])
def test_what_is_no_label_is_refused(given: list[object]) -> None:
    with pytest.raises(FeedError, match="expected whole numbers, or floats, or names"):
        numbered(given)  # type: ignore[arg-type]
