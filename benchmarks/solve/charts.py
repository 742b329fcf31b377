"""The report: a bar chart of every case, drawn by FlowOS's own report, below the verdicts."""

import datetime
import socket
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from contestants import ALL, OURS
from shown import word

from flowos.model import Case, Chart, Measurement, MeasurementRequest, Run, Sample
from flowos.operations._facts import facts
from flowos.plan import summarize
from flowos.report import HeadlineNumber, Report, Section, html, markdown

BARS = {
    "total": "From the matrix in memory to x in memory, to 1e-7. Medians over interleaved rounds.",
    "setup": "What is made of the matrix before the first iteration.",
    "iteration": "Iterations differ in kind: a cycle over a hierarchy is one, too.",
}


def write(report: Mapping[str, Any], folder: Path) -> tuple[Path, Path]:
    """Write solve.html and solve.md to that folder."""
    folder.mkdir(parents=True, exist_ok=True)
    samples = tuple(sample for fought in report["fought"] for sample in _samples(fought))
    measured = summarize(samples)
    shown = Report(
        run=_run(),
        measurements=measured,
        samples=samples,
        sections=tuple(_section(fought) for fought in report["fought"]),
        headlines=tuple(_headlines(measured)),
        findings=tuple(_findings(report)),
    )
    page, text = folder / "solve.html", folder / "solve.md"
    page.write_text(html(shown))
    text.write_text(markdown(shown))
    return page, text


def _headlines(measured: Iterable[Measurement]) -> Iterator[HeadlineNumber]:
    """Ours, case by case."""
    for m in measured:
        if m.metric == "total" and m.case.level("contestant") == OURS.title:
            yield HeadlineNumber(label=m.case.probe, measured=m, named=("contestant",))


def _section(fought: Mapping[str, Any]) -> Section:
    charts = tuple(
        Chart(
            title={"total": "Time to solution", "setup": "Set-up", "iteration": "An iteration"}[
                bar
            ],
            kind="bars",
            x="contestant",
            metrics=(bar,),
            ceilings=False,
            about=about,
        )
        for bar, about in BARS.items()
    )
    return Section(probe=fought["case"]["name"], title=fought["case"]["title"], charts=charts)


def _samples(fought: Mapping[str, Any]) -> Iterator[Sample]:
    for name, turns in fought["turns"].items():
        point = Case(fought["case"]["name"], levels=(("contestant", ALL[name].title),))
        values = {
            "total": [turn["total_seconds"] for turn in turns],
            "setup": [turn["setup_seconds"] for turn in turns],
            "iteration": [turn["solve_seconds"] / max(1, turn["iterations"]) for turn in turns],
        }
        for metric, seconds in values.items():
            for turn, value in zip(turns, seconds, strict=True):
                yield Sample(
                    run="solve",
                    case=point,
                    round=turn["round"],
                    metric=metric,
                    unit="second",
                    values=(value,),
                )


def _run() -> Run:
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    request = MeasurementRequest()
    return Run(
        id="solve",
        started=now,
        ended=now,
        host=socket.gethostname(),
        version=version("flowos-hpc"),
        request=request,
        facts=facts(request),
    )


def _findings(report: Mapping[str, Any]) -> Iterator[str]:
    for line in report["table"]:
        for verdict in line["verdicts"]:
            value = "-" if verdict["value"] is None else f"{verdict['value']:.4g}"
            yield f"{line['title']}: {verdict['what']}: {value}: {word(verdict['holds'])}"
    if equal := report.get("equality"):
        yield f"x is the same to the bit in all ways: {word(equal['holds'])}"
