"""`flowos why`: why a slice, a program or a task does not run."""

import argparse
from typing import TYPE_CHECKING

from flowos.cli._output import print_json
from flowos.cli._shared import add_json, top_command

if TYPE_CHECKING:
    from flowos.model import WaitingTask
    from flowos.operations.why import WhyAnswer


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(
        commands, "why", "flowos why gpu-3f9a1c2e\n         flowos why train_step"
    )
    command.add_argument(
        "name",
        metavar="SLICE|PROCESS|TASK",
        help="a slice's id, a program's (flowos ps), or the name of a task of one that runs",
    )
    add_json(command)


def run(args: argparse.Namespace) -> int:
    from flowos.operations.why import why

    answers = why(args.name)
    if args.json:
        print_json([_plain(each) for each in answers])
        return 0
    for each in answers:
        print(each.of)
        lines = [*each.lines, *map(_line, each.tasks)]
        print(*(f"  {line}" for line in lines or ["nothing of it waits"]), sep="\n")
    return 0


def _plain(answer: "WhyAnswer") -> dict[str, object]:
    tasks = [task._asdict() for task in answer.tasks]
    return {"of": answer.of, "lines": answer.lines, "tasks": tasks}


def _line(task: "WaitingTask") -> str:
    count = f"{task.number} x " * (task.number > 1)
    where = f"{task.flow} on {task.node}" if task.node else task.flow
    return f"{count}{task.task} ({where}) {task.state} {task.why}".rstrip()
