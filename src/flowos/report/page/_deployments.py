"""The page that says how much the place of nodes changed what is measured between them."""

from collections.abc import Iterator, Sequence

from flowos.model import Pairs, Run, counted
from flowos.plan import DeploymentSpread
from flowos.report._deployments_text import ANSWERS
from flowos.report._units import number, share
from flowos.report.page._head import document
from flowos.report.page._marks import WIDTH, line, people, swatch, text
from flowos.report.page._markup import Markup, join, tag
from flowos.report.page._tables import scrolled
from flowos.report.page._ticks import Axis

_SHARES = 84.0
_HEAD, _BAR, _GAP, _GROUP = 25.0, 16.0, 3.0, 12.0
_LABEL = 46
_SPREADS = ("between deployments", "inside one, the middle half")
_COLUMNS = ("number", "answer", "median", *_SPREADS, "each deployment", "compared with the first")
_STYLES = {"differ": "warn", "equal": "good"}
_HOW_TO_READ = (
    "How to read this: nodes were held anew for each deployment, and the same was measured between "
    "them. Between deployments: by which share the largest median exceeds the smallest. Inside "
    "one: the range of the middle half of the repetitions over their median, the median of all "
    "deployments. Deployments follow one another, so a difference may also be one of time."
)


def deployments_html(
    runs: Sequence[Run],
    spreads: Sequence[DeploymentSpread],
    *,
    pages: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> str:
    """One self-contained page. runs: of the deployments, in their order.

    pages: of each run, "" of one without; none if they are not known. notes: what to know of them.
    """
    return document(
        "Deployments of nodes compared, by FlowOS",
        tag(
            "header",
            tag("p", tag("b", "FlowOS"), " compared deployments of nodes", class_="kicker"),
            tag("h1", "How much the place of the nodes changed"),
            tag("p", _deck(runs), class_="deck"),
            tag("p", _lede(spreads), class_="lede"),
        ),
        tag(
            "main",
            _section("spread", "How far each number spreads", *_spread(spreads)),
            _section("deployments", "The deployments", _deployments(runs, pages), *_notes(notes)),
            id="main",
        ),
        tag("footer", tag("p", _HOW_TO_READ)),
        skip="Skip to the numbers",
    )


def _section(name: str, title: str, *content: Markup) -> Markup:
    return tag(
        "section",
        tag("h2", title, id=f"{name}-h"),
        *content,
        id=name,
        aria_labelledby=f"{name}-h",
    )


def _deck(runs: Sequence[Run]) -> str:
    pools = dict.fromkeys(run.deployment.pool for run in runs if run.deployment)
    of = f" of pool {', '.join(pools)}" if pools else ""
    return f"{counted(len(runs), 'deployment')}{of}, one after the other."


def _lede(spreads: Sequence[DeploymentSpread]) -> Markup:
    if not spreads:
        return join("No number was measured in all of them.")
    count = {answer: sum(s.answer == answer for s in spreads) for answer in ANSWERS}
    said = [
        f"{counted(count['differ'], 'number')} of {len(spreads)} changed with the place",
        f"{count['equal']} equal in all of them",
        f"{count['inconclusive']} inconclusive",
    ]
    widest = max(spreads, key=lambda each: each.between)
    max_spread = (
        f" The largest spread between deployments: {share(widest.between)}, of {widest.metric}."
    )
    return join(tag("strong", f"{'; '.join(said)}."), max_spread)


def _shared(spreads: Sequence[DeploymentSpread]) -> Pairs:
    """The levels that all numbers have, if there are several."""
    first, *others = (spread.case.levels for spread in spreads)
    return tuple(level for level in first if others and all(level in each for each in others))


def _levels(spread: DeploymentSpread, shared: Pairs) -> str:
    """Those that not all numbers have."""
    return ", ".join(
        f"{axis} {level}" for axis, level in spread.case.levels if (axis, level) not in shared
    )


def _spread(spreads: Sequence[DeploymentSpread]) -> Iterator[Markup]:
    """A picture for each metric, all in one scale, and one table."""
    if not spreads:
        yield tag("p", "There is nothing to draw.", class_="note")
        return
    shared = _shared(spreads)
    max_spread = max(max(each.between, each.within) for each in spreads)
    legend = [
        tag("li", swatch(colour, bar=True), tag("span", words), class_=f"k{colour}")
        for colour, words in enumerate(_SPREADS)
    ]
    yield tag("ul", *legend, class_="legend")
    figures = [
        tag(
            "figure",
            tag("figcaption", tag("h3", metric)),
            _drawing(
                metric, [s for s in spreads if s.metric == metric], shared, max_spread, f"m{i}"
            ),
        )
        for i, metric in enumerate(dict.fromkeys(spread.metric for spread in spreads))
    ]
    yield tag("div", *figures, class_="plots")
    yield _table(spreads, shared)


def _drawing(
    metric: str, spreads: Sequence[DeploymentSpread], shared: Pairs, max_spread: float, name: str
) -> Markup:
    axis = Axis(0.0, max_spread if max_spread > 0 else 1.0, 1, WIDTH - _SHARES)
    labels = [_levels(each, shared) or metric for each in spreads]
    parts: list[Markup] = []
    y = 4.0
    for each, label in zip(spreads, labels, strict=True):
        parts.append(text(_short(label), 0, y + 14, class_="strong"))
        y += _HEAD
        parts.append(line("base", 0.5, y - 2, 0.5, y + 2 * (_BAR + _GAP)))
        for colour, value in enumerate((each.between, each.within)):
            parts.append(_bar(colour, value, axis, y))
            y += _BAR + _GAP
        y += _GROUP
    return tag(
        "svg",
        tag("title", f"Spread of {metric} between deployments and inside one", id=f"{name}-t"),
        tag("desc", _description(spreads, labels), id=f"{name}-d"),
        *parts,
        class_="plot",
        viewBox=f"0 0 {WIDTH:.0f} {y:.0f}",
        role="img",
        aria_labelledby=f"{name}-t {name}-d",
    )


def _bar(colour: int, value: float, axis: Axis, y: float) -> Markup:
    width = max(axis.at(value) - 1, 1.5)
    title = tag("title", f"{_SPREADS[colour]}: {share(value)}")
    return tag(
        "g",
        tag("rect", title, class_="bar", x=1, y=y, width=width, height=_BAR, rx=1.5),
        text(share(value), WIDTH, y + 13, "end", "strong"),
        class_=f"series s{colour}",
    )


def _short(label: str) -> str:
    return label if len(label) <= _LABEL else f"{label[: _LABEL - 1]}\N{HORIZONTAL ELLIPSIS}"


def _description(spreads: Sequence[DeploymentSpread], labels: Sequence[str]) -> str:
    words = (
        f"{label}: {share(each.between)} between deployments, {share(each.within)} inside one"
        for each, label in zip(spreads, labels, strict=True)
    )
    return f"Bars. {'; '.join(words)}."


def _table(spreads: Sequence[DeploymentSpread], shared: Pairs) -> Markup:
    same = ", ".join(f"{axis} {level}" for axis, level in shared)
    labels = [", ".join(filter(None, (s.metric, _levels(s, shared)))) for s in spreads]
    rows = [_row(each, label) for each, label in zip(spreads, labels, strict=True)]
    return scrolled(
        "The numbers" + f". All with {same}" * bool(same),
        _COLUMNS,
        rows,
        "numbers",
        "comparison",
        numeric=("median", *_SPREADS),
    )


def _row(spread: DeploymentSpread, label: str) -> Markup:
    medians = (people(number(value, spread.unit, spread.metric)) for value in spread.medians)
    others = [
        f"{number_} is {verdict.answer}"
        for number_, verdict in enumerate(spread.verdicts, 2)
        if verdict.answer in ("slower", "faster")
    ]
    why = spread.why if spread.answer == "inconclusive" else ""
    return tag(
        "tr",
        tag("th", label, scope="row"),
        tag("td", ANSWERS[spread.answer], class_=_STYLES.get(spread.answer)),
        tag("td", people(number(spread.median, spread.unit, spread.metric)), class_="n"),
        *(tag("td", share(value), class_="n") for value in (spread.between, spread.within)),
        tag("td", ", ".join(f"{n}: {value}" for n, value in enumerate(medians, 1))),
        tag("td", "; ".join((*others, why) if why else others)),
    )


def _deployments(runs: Sequence[Run], pages: Sequence[str]) -> Markup:
    links = {run.id: page for run, page in zip(runs, pages, strict=False) if page}
    rows = [
        tag(
            "tr",
            tag("th", str(number_), scope="row"),
            tag("td", ", ".join(map(str, run.deployment.nodes)) if run.deployment else run.host),
            tag("td", run.started),
            tag("td", tag("a", run.id, href=links[run.id]) if run.id in links else run.id),
        )
        for number_, run in enumerate(runs, 1)
    ]
    return scrolled(
        "Which nodes they were, in their order",
        ("deployment", "nodes", "started", "run"),
        rows,
        "runs",
        "comparison",
    )


def _notes(notes: Sequence[str]) -> Iterator[Markup]:
    if notes:
        yield tag("ul", *(tag("li", note) for note in notes), class_="plain")
