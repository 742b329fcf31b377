"""A folder on the storage that is measured, and checks of the report's folder."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path, PurePath

from flowos._dataclasses import dataclass
from flowos.engine import Node
from flowos.model import FlowosError, UsageError
from flowos.operations._files import check_folder
from flowos.operations._on_node import outcome_of
from flowos.operations.settings import pool_named

USUAL_SCRATCH = PurePath("/var/tmp")
OWN_STORAGE = PurePath("/var/tmp")
"""Of each node, where its pool names none."""
NEW_FOLDER = "flowos-XXXXXXXX"
"""On the measured storage; what stands for X is new each time."""


def scratch_of(pool: str | None) -> PurePath:
    """What is measured by default: on this machine, or a folder that all nodes of a pool see, if it
    has one. Raises UsageError for an unknown pool."""
    shared = "" if pool is None else pool_named(pool).shared
    return PurePath(shared) if shared else USUAL_SCRATCH


def own_storage_of(pool: str | None) -> PurePath:
    """The own storage of each node. Raises UsageError for an unknown pool."""
    named = "" if pool is None else pool_named(pool).scratch
    return PurePath(named) if named else OWN_STORAGE


@contextmanager
def scratch_in(folder: PurePath) -> Iterator[str]:
    """A new folder on the measured storage. Raises UsageError if none can be created.

    Where it cannot be removed it stays: what was measured counts.
    """
    try:
        fresh = tempfile.TemporaryDirectory(
            prefix=NEW_FOLDER.rstrip("X"), dir=folder, ignore_cleanup_errors=True
        )
    except OSError as error:
        raise UsageError(
            f"no folder can be made in {folder} ({error.strerror}): give another with --scratch"
        ) from error
    with fresh as name:
        yield name


@dataclass(frozen=True, slots=True)
class Scratch:
    """A folder on the measured storage. empty: removes what lies in it, as far as that can be."""

    path: str
    empty: Callable[[], object]


@contextmanager
def scratch_on(node: Node, folder: PurePath) -> Iterator[Scratch]:
    """A new folder that the node and its neighbours see; of one alone, else, on its own storage.

    Raises UsageError if none can be created, or if one of several nodes does not see it.
    """
    with ExitStack() as stack:
        path = _seen_folder(node, folder, stack)
        if path:
            yield Scratch(path, partial(_emptied, path))
            return
        path = _folder_there(node, folder)
        stack.callback(_try, node, "rm", "-rf", path)
        yield Scratch(path, partial(_try, node, "find", path, "-mindepth", "1", "-delete"))


def _seen_folder(node: Node, folder: PurePath, stack: ExitStack) -> str:
    """Made here; "" if a node that has no neighbours does not see it."""
    others = node.neighbours()
    try:
        path = stack.enter_context(scratch_in(folder))
    except UsageError:
        if others or node.is_here:
            raise
        return ""
    for each in () if node.is_here else (node, *others):
        if not outcome_of(each, "test", "-d", path).ok:
            if not others:
                return ""
            raise UsageError(
                f"node {each.name} does not see {folder}: give a folder that all nodes see with "
                "--scratch"
            )
    return path


def _folder_there(node: Node, folder: PurePath) -> str:
    made = outcome_of(node, "mktemp", "-d", "-p", str(folder), NEW_FOLDER)
    if not made.ok:
        said = made.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise UsageError(
            f"node {node.name}: no folder can be made in {folder} ({said}): give another with "
            "--scratch"
        )
    return made.stdout.decode().strip()


def _try(node: Node, *words: str) -> None:
    with suppress(FlowosError):
        outcome_of(node, *words)


def check_out(out: Path) -> None:
    """Raises UsageError if the report's folder cannot be created or written; leaves no file."""
    try:
        check_folder(out)
    except OSError as error:
        raise UsageError(
            f"the report cannot be written to {out} ({error.strerror}): give another with --out"
        ) from error


def _emptied(folder: str) -> None:
    """Empty the folder; files that cannot be removed stay."""
    for left in Path(folder).iterdir():
        with suppress(OSError):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
