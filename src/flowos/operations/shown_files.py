"""Which log of a slice a word of `flowos show` names; of another file, what reads it."""

import re
import shlex
import stat
from pathlib import Path

from flowos.model import UsageError

_JOURNAL = b"flowos results "
_SQLITE = b"SQLite format 3\0"
_FORMAT = re.compile(rb'\s*\{\s*"format": "(flowos-[a-z]+)"')
_OF_FORMATS = {
    b"flowos-report": ("the report of a run", "report"),
    b"flowos-baseline": ("a baseline", "measure --check"),
}
_HEAD_BYTES = 200


def log_named(word: str) -> Path | None:
    """The file that a word names, which may be a log; None for what may be a run or a process.

    Raises UsageError for another known kind of file, a folder, and a file that is missing.
    """
    path = Path(word)
    mode = _mode(path)
    if what := _read_by_another(path / "journal" if stat.S_ISDIR(mode) else path):
        raise UsageError(f"{word} is {what}")
    if stat.S_ISREG(mode):
        return path
    if "/" not in word and "." not in word:  # which no id has
        return None
    if not mode:
        raise UsageError(
            f"there is no file {word}: give a run (flowos list), a process (flowos ps), or the log"
            " of a slice, which fo.slice(..., log=FILE) writes"
        )
    kind = "a folder" if stat.S_ISDIR(mode) else "no regular file"
    raise UsageError(f"{word} is {kind}: the log of a slice is a file, of fo.slice(..., log=FILE)")


def _mode(path: Path) -> int:
    """0 if it is missing."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0


def _read_by_another(path: Path) -> str:
    """What a file is, and the command that reads it; "" if that is not known."""
    if not stat.S_ISREG(_mode(path)):
        return ""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    name = shlex.quote(str(path))
    if head.startswith(_JOURNAL):
        folder = shlex.quote(str(path.parent))
        return f"a journal, which keeps results of tasks; see them with: flowos results {folder}"
    if head.startswith(_SQLITE):
        return f"a database; if it is a store of runs, see them with: flowos list --store {name}"
    if found := _FORMAT.match(head):
        kind, command = _OF_FORMATS.get(found[1], ("", ""))
        return kind and f"{kind}, which another command reads: flowos {command} {name}"
    if path.suffix == ".py" and not head.startswith(b"{"):
        return f"a Python file; if it has a flow, run it with: flowos run {name}"
    return ""
