"""Tasks in Verilog on boards: each gets one that is loaded with its bitstream."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

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

    A module is on one board, whatever tasks it has. Raises SliceRefused if there is none for it.
    """
    wanted: dict[UartModule, str] = {}
    for stage in schedule.all_stages:
        for label, module in _modules(stage):
            if module.board_known:
                wanted.setdefault(module, label)
    if not wanted:
        return schedule, ()
    hold = node.hold_boards(
        [
            WantedBoard(label, module.port, partial(board_file, module.design, module.bitstream))
            for module, label in wanted.items()
        ]
    )
    undo.callback(hold.close)
    if hold.why:
        raise SliceRefused(f"slice: {hold.why}")
    ports = dict(zip(wanted, hold.ports, strict=True))
    on_board: _OnBoard = lambda module: replace(module, port=ports.get(module, module.port))  # noqa: E731
    return _mapped(schedule, on_board), hold.notes


def _modules(stage: Stage) -> Iterator[tuple[str, UartModule]]:
    for step in stage.steps:
        fun = getattr(step.task.body, "fun", None)
        bodies = [b.fun for b in fun.bodies] if isinstance(fun, SiteFunction) else [fun]
        yield from ((step.label, each) for each in bodies if isinstance(each, UartModule))
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
