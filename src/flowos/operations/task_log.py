"""The log of a slice: whether one can be written; `flowos show LOG` reads it, and writes its
timeline as a Chrome trace or a page."""

import json
import os
from pathlib import Path

from flowos.model import LoggedTask, SliceLog, UsageError, from_plain
from flowos.operations._files import replaced
from flowos.report import chrome_trace, timeline_html

_BEGIN = b'{"task": '
_MAX_LINE_BYTES = 1 << 20
_MAX_BAD_LINES = 100
"""A file that begins with so many is no log."""


def log_complaint(word: str) -> str:
    """Why a slice cannot add its tasks to the file of this name, or ""; it is not made."""
    if not word:
        return "expected a file"
    file = Path(word)
    if file.is_dir():
        return "it is a folder: name a file"
    if not file.exists():
        folder = file.parent
        if not folder.is_dir():
            return f"there is no folder {folder}"
        return "" if os.access(folder, os.W_OK | os.X_OK) else f"no file can be made in {folder}"
    if not os.access(file, os.W_OK):
        return "it may not be written"
    if file.is_file() and (begin := _begin_of(file)) and not begin.startswith(_BEGIN):
        return "it is there, and no log of tasks: name another file"
    return ""


def _begin_of(file: Path) -> bytes:
    with file.open("rb") as log:
        return log.read(len(_BEGIN))


def read_log(path: Path) -> SliceLog:
    """Lines that are damaged are left out and counted. Raises UsageError if no line is a task's."""
    tasks: list[LoggedTask] = []
    damaged, damage, unfinished, number = 0, "", False, 0
    with path.open("rb") as file:
        while line := file.readline(_MAX_LINE_BYTES):
            number += 1
            try:
                tasks.append(from_plain(LoggedTask, json.loads(line)))
            except (ValueError, RecursionError) as error:
                unfinished = line[-1:] != b"\n" and len(line) < _MAX_LINE_BYTES
                if unfinished and (tasks or line.startswith(_BEGIN)):
                    break
                damaged += 1
                damage = damage or _damage(path, number, error)
                if not tasks and damaged == _MAX_BAD_LINES:
                    break
    if damaged and not tasks:
        raise UsageError(damage)
    return SliceLog(
        path=path,
        tasks=tuple(sorted(tasks, key=lambda each: each.start)),
        damaged=damaged,
        damage=damage,
        unfinished=unfinished,
    )


def _damage(path: Path, number: int, error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):  # speaks of positions in it
        error = ValueError("it is not as fo.slice(..., log=FILE) writes them")
    why = f"{path}:{number} is no line of a slice's log: {error}"
    return f"{why}; a later FlowOS may have written it" if "has no field" in why else why


def write_trace(log: SliceLog, file: Path) -> None:
    """Write a Chrome trace (chrome://tracing, ui.perfetto.dev). Raises UsageError if that fails."""
    _write(log, json.dumps(chrome_trace(log.tasks)), file)


def write_page(log: SliceLog, file: Path) -> None:
    """Write the timeline as a page. Raises UsageError if that fails."""
    _write(log, timeline_html(log), file)


def _write(log: SliceLog, text: str, file: Path) -> None:
    try:
        if file.exists() and file.samefile(log.path):
            raise UsageError(f"{file} is the log itself: name another file")
        with replaced(file) as out:
            out.write(text.encode())
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"{file} cannot be written: {why}") from error
