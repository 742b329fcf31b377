"""Formats numbers for people; the only place that scales SI base units. ASCII, for any terminal."""

import math
from collections.abc import Iterable, Sequence

from flowos._dataclasses import dataclass

_SYMBOLS = {
    "second": "s",
    "byte/s": "B/s",
    "byte/J": "B/J",
    "byte": "B",
    "1/s": "/s",
    "1": "",
    "instruction": "instructions",
    "cycle": "cycles",
}
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SMALL = ((1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"))
_BINARY = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
NO_NUMBER = "n/a"


@dataclass(frozen=True, slots=True)
class Scale:
    """A unit as people write it, and its size in base units."""

    factor: float
    symbol: str

    def text(self, value: float) -> str:
        """The value in this unit, three significant digits, without the unit."""
        return digits(value / self.factor)

    def number(self, value: float) -> str:
        """The value with the unit; NO_NUMBER if it is not finite."""
        return f"{self.text(value)} {self.symbol}".rstrip() if math.isfinite(value) else NO_NUMBER

    def span(self, low: float, high: float) -> str:
        """Two ends, such as 45.1 to 46.2 GB/s."""
        if not (math.isfinite(low) and math.isfinite(high)):
            return NO_NUMBER
        return f"{self.text(low)} to {self.text(high)} {self.symbol}".rstrip()


ONE = Scale(1.0, "")


def symbol_of(unit: str, metric: str = "") -> str:
    """The unit's short form; operations per second have their own name."""
    if unit == "1/s" and metric == "iops":
        return "IOPS"
    return _SYMBOLS.get(unit, unit)


def scale_for(values: Iterable[float], unit: str, metric: str = "") -> Scale:
    """The unit in which the largest of these values is most readable."""
    largest = max((abs(v) for v in values if math.isfinite(v)), default=0.0)
    symbol = symbol_of(unit, metric)
    if not symbol or largest == 0.0:
        return Scale(1.0, symbol)
    prefixes = _SMALL if unit == "second" else _PREFIXES
    factor, prefix = next((p for p in prefixes if largest >= p[0] * 0.9995), prefixes[-1])
    spaced = f"{prefix} {symbol}" if prefix and symbol == "IOPS" else f"{prefix}{symbol}"
    return Scale(factor, spaced)


def common_scale(values: Sequence[float], unit: str, metric: str = "") -> Scale:
    """The unit in which most of these values read as 0.1 to 1000; of several the largest."""
    found = {scale_for((v,), unit, metric) for v in values if math.isfinite(v) and v}

    def fitness(scale: Scale) -> tuple[int, float]:
        return sum(0.1 <= abs(v) / scale.factor < 1000 for v in values), scale.factor

    return max(found, key=fitness, default=scale_for((), unit, metric))


def digits(value: float) -> str:
    """Three significant digits, without an exponent from 1e-4 to a million."""
    if not math.isfinite(value):
        return NO_NUMBER
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e6:
        return f"{value:.2e}"
    exponent = int(f"{value:.2e}".partition("e")[2])
    return f"{value:.{max(0, 2 - exponent)}f}"


def number(value: float, unit: str, metric: str = "") -> str:
    """A number with its unit, such as 61.2 GB/s, 110 ns, 70.5 k IOPS."""
    return scale_for((value,), unit, metric).number(value)


def span(low: float, high: float, unit: str, metric: str = "") -> str:
    """Two ends in one unit, such as 45.1 to 46.2 GB/s."""
    return scale_for((low, high), unit, metric).span(low, high)


def share(value: float) -> str:
    """A share as a percentage without decimals; small ones have one decimal, or two digits."""
    if not math.isfinite(value):
        return NO_NUMBER
    if 0 < value < 0.001:
        return f"{100 * value:.2g}%"
    return f"{value:.0%}" if value >= 0.095 else f"{value:.1%}"


def size(count: float) -> str:
    """Bytes in binary units, such as 32 MiB; exact for levels of a sweep."""
    if not math.isfinite(count):
        return NO_NUMBER
    factor, symbol = next((b for b in _BINARY if abs(count) >= b[0]), _BINARY[-1])
    return f"{count / factor:.4g} {symbol}"
