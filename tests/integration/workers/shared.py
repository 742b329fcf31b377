"""Processes below one, and slices of one task."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flowos as fo
from tests.waiting import PATIENCE_SECONDS, comes


def parents() -> dict[int, int]:
    """pid -> parent of all processes that are no zombies."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                found[int(folder.name)] = int(fields[1])
    return found


def descendants(pid: int) -> set[int]:
    all_parents = parents()
    found = {pid}
    while True:
        more = {p for p, parent in all_parents.items() if parent in found} - found
        if not more:
            return found - {pid}
        found |= more


def gone(pids: set[int], seconds: float = PATIENCE_SECONDS) -> bool:
    return comes(lambda: not pids & parents().keys(), seconds)


def await_file(path: Path) -> str:
    """What stands in it, once it is there; it is to be put there by a rename."""
    assert comes(path.exists), f"{path} never came"
    return path.read_text()


def write_pid(path: Path) -> None:
    """For tasks: this process's number, to whoever waits for the file."""
    new = path.with_suffix(".new")
    new.write_text(str(os.getpid()))
    new.rename(path)


def task(name: str, fun: Callable[..., Any], inputs: int = 1) -> Any:
    ports = tuple((f"i{k}", fo.any_) for k in range(inputs))
    return fo.task(
        {"task_name": name, "iport_nametypes": ports, "oport_nametypes": fo.any_, "fun": fun}
    )


def one(fun: Callable[..., Any], **options: Any) -> Any:
    return fo.slice(
        fo.flow_output(task("only", fun)(fo.flow_input("x", fo.any_))),
        workers="process",
        **{"cores": 1, **options},
    )


def same(x: object) -> object:
    return x


def own_pid(_: object) -> int:
    return os.getpid()
