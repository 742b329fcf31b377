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
    yield ""
    yield from apart(report)
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
    heads = ("time", "least", "most", "rounds", "x limit", "first", "cpu s", "source MB")
    yield f"  {'':22}" + "".join(f"{head:>10}" for head in heads)
    contestants = sorted(line["contestants"].items(), key=lambda item: float(item[1]["seconds"]))
    for name, found in contestants:
        sent = found["source_bytes"]
        cells = [
            f"{found['seconds']:.3f}",
            *(f"{value:.3f}" for value in found["spread"]),
            f"{found['rounds']}",
            f"{found['ratio']:.2f}",
            f"{found['first_seconds']:.3f}",
            f"{found['cpu_seconds']:.1f}",
            "-" if sent is None else f"{sent / 1e6:.0f}",
        ]
        scaled = f"  scaled from {found['scaled_from']}" if found["scaled_from"] else ""
        yield f"  {TITLES[name]:22}" + "".join(f"{cell:>10}" for cell in cells) + scaled
    for name, why in line["failed"].items():
        yield f"  {TITLES[name]:22} failed: {why}"


def apart(report: Mapping[str, Any]) -> Iterator[str]:
    for found in report.get("store_check", ()):
        yield (
            f"far storage of {found['mbit']:g} Mbit and {found['round_trip_ms']:g} ms, "
            f"{found['readers']} readers: {found['bytes_per_second'] / 1e6:.1f} MB/s, "
            f"{found['share_of_link']:.1%} of its link"
        )
    if cost := report.get("python_cost"):
        verdict = _verdict(cost)
        yield f"Python for a batch: {cost['seconds_per_batch'] * 1e6:.2f} us, at most 5: {verdict}"
    for case, seconds in report.get("first_listing", {}).items():
        yield f"first listing and first batch, {case}: {seconds:.3f} s"
    for name in ("shared", "shared_killed"):
        if found := report.get(name):
            killed = ", one of them killed" if found["killed"] else ""
            yield (
                f"{found['processes']} processes, one cache{killed}: from the source "
                f"{found['source_bytes_over_data']:.4f}x the data, at most {found['most']:.4f}: "
                f"{_verdict(found)}"
            )
    if found := report.get("half_cache"):
        ratio = found["hit_ratio"]
        yield f"a cache of half: hit ratio {ratio:.3f}, at least 0.49: {_verdict(found)}"
    for point in report.get("figure_6", ()):
        yield f"{point['in_flight']} reads in flight: {point['seconds']:.2f} s for 1,000 batches"
    for way, seconds in report.get("table_3", {}).get("seconds", {}).items():
        yield f"all files copied, {way}: {seconds:.2f} s"
    for way, seconds in report.get("figure_8", {}).items():
        yield f"ten epochs, {way}: {seconds:.1f} s"


def _verdict(found: Mapping[str, Any]) -> str:
    return "holds" if found["holds"] else "MISSED"


def figures(report: Mapping[str, Any]) -> str:
    """Only the table of claims, as Markdown."""
    return "\n".join(_figures(report)) + "\n"


def _figures(report: Mapping[str, Any]) -> Iterator[str]:
    yield "| case | limit | FlowOS | of the limit | promised | best other |"
    yield "| --- | ---: | ---: | ---: | ---: | --- |"
    for line in report["table"]:
        if "ratio" in line:
            others = {n: f for n, f in line["contestants"].items() if n != OURS.name}
            best = min(others, key=lambda name: float(others[name]["seconds"]), default="")
            rival = f"{TITLES[best]} {others[best]['seconds']:.2f} s" if best else "-"
            yield (
                f"| {line['title']} | {line['limit_seconds']:.2f} s "
                f"| {line['contestants'][OURS.name]['seconds']:.2f} s | {line['ratio']:.3f}x "
                f"| {line['most']:.2f}x{'' if line['holds'] else ', missed'} | {rival} |"
            )
    yield ""
    yield from (f"- {words}" for words in apart(report))
