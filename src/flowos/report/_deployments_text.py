"""Deployments of nodes compared, as a table in the terminal."""

from collections.abc import Iterator, Sequence

from flowos.model import Deployment, Run
from flowos.plan import DeploymentSpread
from flowos.report._units import number, share
from flowos.report._wrap import wrapped

ANSWERS = {
    "differ": "the place of the nodes changed it",
    "equal": "equal in all of them",
    "inconclusive": "inconclusive",
}


def deployments_text(runs: Sequence[Run], spreads: Sequence[DeploymentSpread]) -> str:
    """runs: of the deployments, in their order."""
    return "\n".join((*_deployments(runs), *(line for s in spreads for line in _number(s)), ""))


def _deployments(runs: Sequence[Run]) -> Iterator[str]:
    found = [run.deployment for run in runs if run.deployment]
    if found:
        several = f"{len(found)} deployments of nodes, one after the other"
        yield f"pool {found[0].pool}, {several if len(found) > 1 else '1 deployment of nodes'}:"
    for run, deployment in zip(runs, found, strict=True):
        yield from wrapped(f"{_line(deployment)}: run {run.id}", "  ", "     ")


def _line(deployment: Deployment) -> str:
    return f"{deployment.number}  {', '.join(map(str, deployment.nodes))}"


def _number(spread: DeploymentSpread) -> Iterator[str]:
    levels = ", ".join(f"{axis} {level}" for axis, level in spread.case.levels)
    yield ""
    name = f"{spread.case.probe} {spread.metric}, {levels}"
    if len(spread.medians) == 1:
        yield name
        yield f"  median {number(spread.median, spread.unit, spread.metric)}"
        return
    yield f"{name}: {ANSWERS[spread.answer]}"
    medians = "  ".join(
        f"{n}: {number(value, spread.unit, spread.metric)}"
        for n, value in enumerate(spread.medians, 1)
    )
    yield f"  median {number(spread.median, spread.unit, spread.metric)}  ({medians})"
    between, within = share(spread.between), share(spread.within)
    yield f"  between deployments {between}, inside one {within} (middle half)"
    if spread.answer == "inconclusive":
        yield from wrapped(spread.why, "  ", "  ")
    for verdict in spread.verdicts:
        if verdict.answer in ("slower", "faster"):
            yield f"  {verdict.other} is {verdict.answer} than {verdict.base}"
