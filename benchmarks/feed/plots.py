"""The report: figures 4 to 8 of the paper (paper.py) with our results, drawn by FlowOS's report."""

import platform
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import paper
from cases import WHERE_OTHERS_ARE_AS_GOOD, Case
from entrants import thousand
from peers import OURS
from text_table import TITLES, apart, figures

from flowos.model import Case as Point
from flowos.model import Chart, Measurement, MeasurementRequest, Run, Sample
from flowos.operations._facts import facts
from flowos.plan import summarize
from flowos.report import HeadlineNumber, Report, Section, html, markdown

SECONDS = "seconds"


def _chart(title: str, kind: Any, x: str, about: str, ceilings: bool = False, **more: Any) -> Chart:
    return Chart(
        title=title,
        kind=kind,
        x=x,
        metrics=(SECONDS,),
        series=("contestant",),
        facets=("where",),
        ceilings=ceilings,
        about=about,
        **more,
    )


SECTIONS = (
    Section(
        probe="workers",
        title="1,000 minibatches of 32 over workers (figure 4)",
        charts=(
            _chart(
                "Time for 1,000 minibatches",
                "curve",
                "workers",
                "Workers are processes or threads, as the contestant has them; ours is at 1, as it "
                "finds its number by itself. The paper's curves are given where its text has "
                "figures.",
                ceilings=True,
                log_x=True,
                log_y=True,
            ),
        ),
    ),
    Section(
        probe="delivered",
        title="Time over minibatches delivered (figure 5, table 2)",
        charts=(
            _chart(
                "Time until so many minibatches were delivered",
                "curve",
                "batches",
                "From before the contestant's objects are made. The first point is table 2's first "
                "minibatch.",
                log_x=True,
                log_y=True,
            ),
        ),
    ),
    Section(
        probe="in flight",
        title="Time over reads in flight (figure 6)",
        charts=(
            _chart(
                "Time for 1,000 minibatches",
                "curve",
                "reads in flight",
                "The paper's are prefetching processes.",
                log_x=True,
                log_y=True,
            ),
        ),
    ),
    Section(
        probe="copy",
        title="All files copied to the node (table 3)",
        charts=(_chart("Seconds per 1,000 files", "bars", "way", "On one node, 8 at once."),),
    ),
    Section(
        probe="ten epochs",
        title="Ten epochs (figures 7 and 8)",
        charts=(
            _chart(
                "Time for ten epochs",
                "bars",
                "nodes",
                "The paper trains ResNet-50 on nodes of 4 GPUs; here batches are only taken.",
                log_y=True,
            ),
        ),
    ),
)


def write(report: Mapping[str, Any], folder: Path) -> tuple[Path, ...]:
    """Write feed.html, feed.md and the table alone, figures.md, to that folder."""
    folder.mkdir(parents=True, exist_ok=True)
    samples = tuple(Sample(**one) for one in _samples(report))
    measured = summarize(samples, ceiling_of=_limit_of)
    run_report = Report(
        run=_run(report),
        measurements=measured,
        samples=samples,
        sections=SECTIONS,
        headlines=tuple(_headlines(measured)),
        findings=tuple(_findings(report)),
    )
    words = {
        "feed.html": html(run_report),
        "feed.md": markdown(run_report),
        "figures.md": figures(report),
    }
    for name, text in words.items():
        (folder / name).write_text(text)
    return tuple(folder / name for name in words)


def _limit_of(point: Point) -> Point | None:
    if point.probe != "workers" or point.level("where") == paper.WHERE:
        return None
    return Point("limit", levels=(("where", point.level("where")),))


def _headlines(measured: Iterable[Measurement]) -> Iterator[HeadlineNumber]:
    """Ours, case by case."""
    for m in measured:
        if m.case.probe == "workers" and m.case.level("contestant") == TITLES[OURS.name]:
            yield HeadlineNumber(
                label=m.case.level("where"), measured=m, named=("where", "contestant", "workers")
            )


def _run(report: Mapping[str, Any]) -> Run:
    """The facts are of this machine: write the report where it was measured."""
    request = MeasurementRequest()
    return Run(
        id="feed",
        started=_moment(report["began"]),
        ended=_moment(report["began"] + report["seconds"]),
        host=report["machine"]["host"],
        version=version("flowos-hpc"),
        request=request,
        facts=facts(request),
    )


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _sample(probe: str, where: str, contestant: str, values: Any, **levels: object) -> Any:
    common = (("where", where), ("contestant", contestant))
    pairs = tuple((axis.replace("_", " "), str(level)) for axis, level in levels.items())
    return {
        "run": "feed",
        "case": Point(probe, levels=(*common, *pairs)),
        "round": 0,
        "metric": SECONDS,
        "unit": "second",
        "values": tuple(values),
    }


def _samples(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for fought in report["fought"]:
        yield from _of_case(fought)
    for point in report.get("figure_6", ()):
        yield _sample(
            "in flight", _here(), "FlowOS", [point["seconds"]], reads_in_flight=point["in_flight"]
        )
    per_thousand = 1000 / report["data"]["count"]
    for way, seconds in report.get("table_3", {}).get("seconds", {}).items():
        yield _sample("copy", _here(), way, [seconds * per_thousand], way=way)
    for way, seconds in report.get("figure_8", {}).items():
        yield _sample("ten epochs", _here(), way, [seconds], nodes=1)
    yield from _of_paper()


def _here() -> str:
    return f"here ({platform.node()}), 1 Gbit, 1 ms"


def _of_case(fought: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    where = fought["case"]["title"]
    yield _sample("limit", where, fought["case"]["limit"], fought["limits"])
    for name, points in fought["swept"].items():
        for point in points:
            if "seconds" in point and point["workers"]:
                words = " ".join(f"{k}={v}" for k, v in point["options"].items())
                who = f"{TITLES[name]} {words}".strip()
                yield _sample("workers", where, who, [point["seconds"]], workers=point["workers"])
    case = Case(**fought["case"])
    for name, turns in fought["turns"].items():
        title = TITLES[name]
        if name == OURS.name or case.settings_of:
            whole = [thousand(case, turn) for turn in turns]
            workers = fought["settings"].get(name, {}).get("workers") or 1
            yield _sample("workers", where, title, whole, workers=workers)
        for place, (batches, _) in enumerate(turns[0]["marks"]):
            at = [turn["marks"][place][1] for turn in turns if len(turn["marks"]) > place]
            yield _sample("delivered", where, title, at, batches=batches)


def _of_paper() -> Iterator[dict[str, Any]]:
    where = paper.WHERE
    for who, workers, seconds in paper.FIGURE_4:
        yield _sample("workers", where, who, [seconds], workers=workers)
    for who, first, last in paper.TABLE_2:
        yield _sample("delivered", where, who, [first], batches=1)
        yield _sample("delivered", where, who, [last], batches=1000)
    for count, seconds in paper.FIGURE_6:
        yield _sample("in flight", where, "its proposal", [seconds], reads_in_flight=count)
    per_thousand = 1000 / paper.TABLE_3_FILES
    _, seconds = paper.TABLE_3[0]
    yield _sample("copy", where, "parallel cp", [seconds * per_thousand], way="parallel cp")
    for who, nodes, seconds in paper.FIGURE_7:
        yield _sample("ten epochs", where, who, [seconds], nodes=nodes)


def _findings(report: Mapping[str, Any]) -> Iterator[str]:
    for line in report["table"]:
        if "ratio" in line:
            ours = line["contestants"][OURS.name]
            yield (
                f"{line['title']}: {ours['seconds']:.2f} s, {line['ratio']:.3f} x the limit of "
                f"{line['limit_seconds']:.2f} s ({line['limit']}), promised {line['most']:.2f}: "
                f"{'holds' if line['holds'] else 'MISSED'}"
            )
        if line["case"] == "far-once":
            yield WHERE_OTHERS_ARE_AS_GOOD
    yield from apart(report)
