"""What the next run of a slice does: its tasks, their engines, and the copies between memories."""

from collections.abc import Iterator, Sequence
from typing import Any

from flowos.engine.flow._executor import Executor
from flowos.engine.flow._sites import SiteFunction
from flowos.model import HOST, EngineMissing, EnginePlan, NativeCode, Python, engine_of
from flowos.plan import Schedule, Stage, Step, whole_plan


def planned_run(
    executor: Executor, values: Sequence[object], sites: EnginePlan | None
) -> EnginePlan:
    """sites: of the tasks with several bodies, if the flow has any."""
    found = sites or EnginePlan(state="chosen", tasks=(), copies=())
    stages = executor.stages_of(found)
    numbers = site_numbers(executor.schedule)
    homes, missing = _homes(stages, {k: found.tasks[i].engine for k, i in numbers.items()})
    return whole_plan(found, stages, values, numbers, homes, missing)


def site_numbers(schedule: Schedule) -> dict[str, int]:
    """Of the steps that have several bodies, by label."""
    steps = {step.label: step for stage in schedule.stages for step in stage.steps}
    functions = {label: getattr(step.task.body, "fun", None) for label, step in steps.items()}
    return {k: fun.site for k, fun in functions.items() if isinstance(fun, SiteFunction)}


def _homes(
    stages: Sequence[Stage], engines: dict[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Where engines have their arrays; why that is not known of others. engines: of sites."""
    homes: dict[str, str] = {}
    missing: dict[str, str] = {}
    for step in _all_steps(stages):
        body = _body(step, engines.get(step.label, ""))
        engine = engine_of(body)
        if not isinstance(body, NativeCode) or engine in homes or engine in missing:
            continue
        try:
            homes[engine] = str(getattr(body.fun, "home", HOST))
        except EngineMissing as error:
            missing[engine] = str(error)
    return homes, missing


def _all_steps(stages: Sequence[Stage]) -> Iterator[Step]:
    """Those in conds and loops too."""
    for stage in stages:
        for step in stage.steps:
            yield step
            yield from _all_steps(step.inner)
        for flow in stage.flows:
            yield from _all_steps(flow.stages)


def _body(step: Step, engine: str) -> Any:
    """Of a site the one for its engine."""
    body = step.task.body
    if not isinstance(body, Python) or not isinstance(body.fun, SiteFunction):
        return body
    return next((each for each in body.fun.bodies if engine_of(each) == engine), body)
