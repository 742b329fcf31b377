"""The report as a table for a terminal."""

from collections.abc import Iterator, Mapping
from typing import Any

from contestants import ALL

HEADS = (
    "total",
    "least",
    "most",
    "set-up",
    "iter.",
    "ms/iter.",
    "residual",
    "GiB",
    "x ours",
    "x limit",
    "others",
)


def table(report: Mapping[str, Any]) -> str:
    return "\n".join(_lines(report))


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    machine = report["machine"]
    yield f"{machine['processor']}, {machine['cores']} cores, load {machine['load']:.1f}"
    yield f"to 1e-7 of b, which is drawn from seed {report['seed']}; times in s"
    for line in report["table"]:
        yield ""
        yield from _case(line)
    if equal := report.get("equality"):
        yield ""
        yield from _equality(equal)
    yield ""
    yield from (f"MISSED {what}" for what in report["missed"])


def _case(line: Mapping[str, Any]) -> Iterator[str]:
    yield f"{line['title']}"
    yield f"  {'':26}" + "".join(f"{head:>9}" for head in HEADS)
    contestants = sorted(
        line["contestants"].items(), key=lambda item: float(item[1]["total_seconds"])
    )
    for name, found in contestants:
        cells = _cells(found)
        options = " ".join(line["options"].get(name, ()))
        yield f"  {ALL[name].title:26}" + "".join(f"{cell:>9}" for cell in cells) + f"  {options}"
    for name, why in line["failed"].items():
        yield f"  {ALL[name].title:26} took no part: {why}"
    for verdict in line["verdicts"]:
        value = "-" if verdict["value"] is None else f"{verdict['value']:.4g}"
        yield f"  {word(verdict['holds'])}: {verdict['what']}: {value} {verdict['why']}".rstrip()


def _cells(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"{found['total_seconds']:.3f}"
    yield from (f"{value:.3f}" for value in found["spread"])
    yield f"{found['setup_seconds']:.3f}"
    yield f"{found['iterations']:.0f}"
    yield f"{found['seconds_per_iteration'] * 1e3:.2f}"
    yield f"{found['residual']:.1e}"
    yield f"{found['memory_bytes'] / 2**30:.2f}"
    yield f"{found['times_of_ours'][0]:.2f}" if found["times_of_ours"] else "-"
    yield f"{found['times_of_limit']:.2f}" if found["times_of_limit"] else "-"
    yield f"{found['others']:.0%}"


def _equality(equal: Mapping[str, Any]) -> Iterator[str]:
    for name, found in equal["matrices"].items():
        digests = list(found.values())
        usual = max(digests, key=digests.count)
        different = [f"{way}: {digest}" for way, digest in found.items() if digest != usual]
        yield f"x of {name}, {len(found)} ways: {'equal bit for bit' if not different else ''}"
        yield from (f"  DIFFERS: {way}" for way in different)
    yield from (f"  not tried: {way}: {why}" for way, why in equal["not_tried"].items())


def word(holds: bool | None) -> str:
    return {True: "holds", False: "MISSED", None: "not known"}[holds]
