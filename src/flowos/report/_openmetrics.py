"""Renders all numbers as gauges for Prometheus: its text format, which OpenMetrics reads as well.

Source: OpenMetrics 1.0. A file that ends with .prom in the folder of node_exporter's textfile
collector is read from then on.
"""

import re
from collections.abc import Iterator

from flowos.model import Measurement
from flowos.report._report import Report

_UNITS = {"second": "seconds", "1": "ratio", "1/s": "per_second", "byte": "bytes", "Hz": "hertz"}
_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_OWN_LABELS = ("host", "run", "trusted")


def openmetrics(book: Report) -> str:
    """A gauge for each probe and metric, in base units, whose labels are the levels of the case.

    Its value is the median, of a ceiling the best; `trusted` is "no" for one that is marked.
    """
    families: dict[str, list[Measurement]] = {}
    for measured in book.measurements:
        families.setdefault(_name(measured), []).append(measured)
    lines = [line for name, found in families.items() for line in _family(book, name, found)]
    return "\n".join((*lines, "# EOF", ""))


def _family(book: Report, name: str, found: list[Measurement]) -> Iterator[str]:
    first = found[0]
    which = "best" if first.ceiling else "median"
    yield f"# TYPE {name} gauge"
    yield f"# UNIT {name} {_unit(first.unit)}"
    said = f"{first.metric} of probe {first.case.probe}, the {which}."
    yield f"# HELP {name} {_escaped(said)}"
    for measured in found:
        own = (book.run.host, book.run.id, "yes" if measured.trust.good else "no")
        labels = {
            **dict(zip(_OWN_LABELS, own, strict=True)),
            **{_label(axis): level for axis, level in measured.case.levels},
        }
        said = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        yield f"{name}{{{said}}} {measured.value!r}"


def _name(measured: Measurement) -> str:
    parts = ("flowos", measured.case.probe, measured.metric, _unit(measured.unit))
    return _plain("_".join(parts))


def _unit(unit: str) -> str:
    """Prometheus' base units: bytes_per_second for byte/s."""
    return _plain(_UNITS.get(unit) or re.sub(r"^(\w+?)s?/s$", r"\1s_per_second", unit))


def _plain(name: str) -> str:
    return re.sub(r"\W+", "_", name.replace("/", "_per_"), flags=re.ASCII)


def _label(axis: str) -> str:
    name = _plain(axis)
    return f"level_{name}" if name in _OWN_LABELS or name[:1].isdigit() else name


def _escaped(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8").translate(_ESCAPED)
