"""Sizes as people write them at `flowos feed`."""

import argparse

import pytest

from flowos.cli.feed import size


@pytest.mark.parametrize(
    ("word", "bytes_"),
    [
        ("800G", 800 * 10**9),
        ("64GiB", 64 << 30),
        ("1.5t", 15 * 10**11),
        ("4096", 4096),
        ("1kB", 1000),
    ],
)
def test_a_size_is_read_with_its_unit(word: str, bytes_: int) -> None:
    assert size(word) == bytes_


@pytest.mark.parametrize("word", ["", "G", "-1G", "0", "1e400", "10X", "1GG", "nan", "i5"])
def test_what_is_no_size_is_refused(word: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is no size such as 800G or 64GiB"):
        size(word)
