"""Numbers of command lines: types of argparse that refuse those that nothing is measured with."""

import argparse
import math
from collections.abc import Callable


def whole_number(least: int = 1, why: str = "") -> Callable[[str], int]:
    """A whole number. why: there is a least one, if one would not guess it."""
    reason = f", {why}" if why else ""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(
                f"{text[:40]!r}: give a whole number, {least} or more{reason}"
            )
        return number

    return read


def whole_numbers(least: int = 1) -> Callable[[str], list[int]]:
    """Several whole numbers, by commas."""
    each = whole_number(least)
    return lambda text: [each(word) for word in text.split(",")]


def positive(text: str) -> float:
    return _real(text, lambda number: number > 0, "above 0")


def not_negative(text: str) -> float:
    return _real(text, lambda number: number >= 0, "0 or more")


def _real(text: str, fits: Callable[[float], bool], bound: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and fits(number)):
        raise argparse.ArgumentTypeError(f"{text[:40]!r}: give a number {bound}")
    return number
