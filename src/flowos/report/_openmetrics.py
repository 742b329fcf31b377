"""Renders all numbers as gauges for Prometheus: its text format, which OpenMetrics reads as well.

Source: OpenMetrics 1.0. A file that ends with .prom in the folder of node_exporter's textfile
collector is read from then on.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import count

from flowos.model import Measurement
from flowos.report._report import Report
from flowos.report._wrap import safe

_UNITS = {"second": "seconds", "1": "ratio", "1/s": "per_second", "byte": "bytes", "Hz": "hertz"}
_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_OWN_LABELS = ("host", "run", "trusted")


def openmetrics(report: Report) -> str:
    """A gauge for each probe and metric, in base units, whose labels are the levels of the case.

    Its value is the median, of a ceiling the best; `trusted` is "no" for one that is marked.
    """
    families: dict[tuple[str, str, str], list[Measurement]] = {}
    for measured in report.measurements:
        key = measured.case.probe, measured.metric, measured.unit
        families.setdefault(key, []).append(measured)
    labels = _labels(axis for m in report.measurements for axis, _ in m.case.levels)
    names: set[str] = set()
    lines: list[str] = []
    for found in families.values():
        name = _name(found[0], names)
        names.add(name)
        lines += _family(report, name, found, labels)
    return "\n".join((*lines, "# EOF", ""))


def _family(
    report: Report, name: str, found: list[Measurement], label_of: Mapping[str, str]
) -> Iterator[str]:
    first = found[0]
    which = "best" if first.ceiling else "median"
    yield f"# TYPE {name} gauge"
    if first.unit:
        yield f"# UNIT {name} {_unit(first.unit)}"
    said = f"{first.metric} of probe {first.case.probe}, the {which}."
    yield f"# HELP {name} {_escaped(said)}"
    for measured in found:
        own = (report.run.host, report.run.id, "yes" if measured.trust.good else "no")
        labels = {
            **dict(zip(_OWN_LABELS, own, strict=True)),
            **{label_of[axis]: level for axis, level in measured.case.levels},
        }
        said = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        yield f"{name}{{{said}}} {measured.value!r}"


def _name(measured: Measurement, others: Collection[str]) -> str:
    """With a number where two metrics, as a-b and a_b, would be one family with its lines twice."""
    parts, unit = ("flowos", measured.case.probe, measured.metric), _unit(measured.unit)
    names = (_plain("_".join(filter(None, (*parts, str(n) * (n > 1), unit)))) for n in count(1))
    return next(name for name in names if name not in others)


def _unit(unit: str) -> str:
    """Prometheus' base units: bytes_per_second for byte/s."""
    return _plain(_UNITS.get(unit) or re.sub(r"^(\w+?)s?/s$", r"\1s_per_second", unit))


def _plain(name: str) -> str:
    return re.sub(r"\W+", "_", name.replace("/", "_per_"), flags=re.ASCII)


def _labels(axes: Iterable[str]) -> dict[str, str]:
    """A label of its own for each axis; level_N for a name that no label can have."""
    found: dict[str, str] = {}
    for axis in axes:
        if axis not in found:
            found[axis] = _label(axis, {*_OWN_LABELS, *found.values()})
    return found


def _label(axis: str, others: Collection[str]) -> str:
    name = _plain(axis)
    if name in _OWN_LABELS or name[:1].isdigit():
        name = f"level_{name}"
    if name.strip("_") and not name.startswith("__") and name not in others:
        return name
    return next(new for n in count(1) if (new := f"level_{n}") not in others)


def _escaped(text: str) -> str:
    """Control characters but the ends of lines become '?'."""
    return "\n".join(map(safe, text.split("\n"))).translate(_ESCAPED)
