"""The report as a table for a terminal."""

from collections.abc import Iterator, Mapping
from typing import Any

from cases import WHERE_OTHERS_ARE_AS_GOOD
from peers import OURS, PEERS

TITLES = {contestant.name: contestant.title for contestant in (OURS, *PEERS)}


def table(report: Mapping[str, Any]) -> str:
    return "\n".join(_lines(report))


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    data = report["data"]
    mean = data["bytes"] / data["count"] / 1024
    yield f"{report['machine']}"
    yield f"{data['count']:,} JPEGs of {mean:.1f} KiB, {data['bytes'] / 1e6:.0f} MB; times in s"
    for line in report["table"]:
        yield ""
        yield from _case(line)
        if line["case"] == "far-once":
            yield f"  {WHERE_OTHERS_ARE_AS_GOOD}"
    for name in ("shared", "shared_killed", "half_cache", "store_check", "first_listing"):
        if name in report:
            yield f"{name}: {report[name]}"
    for name in ("figure_6", "table_3", "figure_8"):
        if name in report:
            yield f"{name}: {report[name]}"
    yield from (f"not here: {name}: {why}" for name, why in report["missing"].items())
    yield from (f"MISSED {what}" for what in report["missed"])


def _case(line: Mapping[str, Any]) -> Iterator[str]:
    limit = line["limit_seconds"]
    known = f"limit {limit:.2f} ({line['limit']})" if limit else "no limit measured"
    verdict = ""
    if "ratio" in line:
        holds = "holds" if line["holds"] else "MISSED"
        verdict = f"; ours {line['ratio']:.3f}x, promised {line['most']:.2f}x: {holds}"
    yield f"{line['title']}: {known}{verdict}"
    heads = ("time", "least", "most", "x limit", "first", "cpu s", "source MB")
    yield f"  {'':22}" + "".join(f"{head:>10}" for head in heads)
    told = sorted(line["contestants"].items(), key=lambda item: float(item[1]["seconds"]))
    for name, found in told:
        sent = found["source_bytes"]
        cells = [
            f"{found['seconds']:.3f}",
            *(f"{value:.3f}" for value in found["spread"]),
            f"{found['ratio']:.2f}",
            f"{found['first_seconds']:.3f}",
            f"{found['cpu_seconds']:.1f}",
            "-" if sent is None else f"{sent / 1e6:.0f}",
        ]
        scaled = f"  scaled from {found['scaled_from']}" if found["scaled_from"] else ""
        yield f"  {TITLES[name]:22}" + "".join(f"{cell:>10}" for cell in cells) + scaled
    for name, why in line["failed"].items():
        yield f"  {TITLES[name]:22} failed: {why}"
