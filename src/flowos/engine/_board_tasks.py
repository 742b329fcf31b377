"""Tasks in Verilog on boards: each gets one that is loaded with its bitstream."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

from flowos._dataclasses import replace
from flowos.engine._device_hold import WantedBoard
from flowos.engine._node import Node
from flowos.engine.bodies._bitstream import board_file
from flowos.engine.bodies._uart_module import UartModule
from flowos.engine.flow._sites import SiteFunction
from flowos.model import NativeCode, SliceRefused
from flowos.plan import Schedule, Stage, Step

_OnBoard = Callable[[UartModule], UartModule]


def with_boards(
    schedule: Schedule, node: Node, undo: ExitStack
) -> tuple[Schedule, tuple[str, ...]]:
    """The same, whose tasks know the line of their board, and what was loaded.

    A module is on one board, whatever tasks it has. If there is none for one that is a task's only
    body, or if its source is wrong, raises SliceRefused; else its task takes another body.
    """
    boarded: dict[UartModule, UartModule] = {}
    notes: list[str] = []
    for wanted, may_lack in _wanted(schedule):
        hold = node.hold_boards(
            [
                WantedBoard(label, each.port, partial(board_file, each.design, each.bitstream))
                for each, label in wanted.items()
            ]
        )
        undo.callback(hold.close)
        if hold.why and (hold.is_wrong or not may_lack):
            raise SliceRefused(f"slice: {hold.why}")
        if hold.why:
            boarded |= {each: replace(each, missing=hold.why) for each in wanted}
            continue
        pairs = zip(wanted, hold.ports, strict=True)
        boarded |= {each: replace(each, port=port) for each, port in pairs}
        notes += hold.notes
    if not boarded:
        return schedule, ()
    return _mapped(schedule, lambda module: boarded.get(module, module)), tuple(notes)


def _wanted(schedule: Schedule) -> Iterator[tuple[dict[UartModule, str], bool]]:
    """Modules that get boards together, with labels of their tasks, and whether they may lack them.

    Those that may not come first.
    """
    needed: dict[UartModule, str] = {}
    others: dict[UartModule, str] = {}
    for stage in schedule.all_stages:
        for label, module, is_only in _modules(stage):
            if module.board_known:
                (needed if is_only else others).setdefault(module, label)
    if needed:
        yield needed, False
    yield from (({each: label}, True) for each, label in others.items() if each not in needed)


def _modules(stage: Stage) -> Iterator[tuple[str, UartModule, bool]]:
    """With the label of its task, whose only body it may be."""
    for step in stage.steps:
        fun = getattr(step.task.body, "fun", None)
        bodies = [b.fun for b in fun.bodies] if isinstance(fun, SiteFunction) else [fun]
        for each in bodies:
            if isinstance(each, UartModule):
                yield step.label, each, each is fun
        for inner in step.inner:
            yield from _modules(inner)


def _mapped(schedule: Schedule, on_board: _OnBoard) -> Schedule:
    def stage_of(stage: Stage) -> Stage:
        steps = tuple(map(step_of, stage.steps))
        flows = tuple(_mapped(flow, on_board) for flow in stage.flows)
        return replace(stage, steps=steps, flows=flows)

    def step_of(step: Step) -> Step:
        body: Any = step.task.body
        if isinstance(body, NativeCode):
            step = replace(step, task=replace(step.task, body=_on_board(body, on_board)))
        return replace(step, inner=tuple(map(stage_of, step.inner)))

    return replace(schedule, stages=tuple(map(stage_of, schedule.stages)))


def _on_board(body: NativeCode, on_board: _OnBoard) -> NativeCode:
    fun: Any = body.fun
    if isinstance(fun, UartModule):
        return replace(body, fun=on_board(fun))
    if isinstance(fun, SiteFunction):
        bodies = [_on_board(b, on_board) if isinstance(b, NativeCode) else b for b in fun.bodies]
        return replace(body, fun=SiteFunction(fun.site, fun.task, bodies, fun.stays))
    return body
