"""What flowos-init of each rank has written into the run folder so far."""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from flowos.engine.launch._orphans import Started


@dataclass(frozen=True, slots=True)
class Answers:
    """Of each rank: its status file, once it has ended; where it started."""

    statuses: dict[int, bytes]
    started: dict[int, Started]

    def may_go_on(self) -> bool:
        """Whether one that did not tell its end may live still."""
        return any(_may_live(at) for rank, at in self.started.items() if rank not in self.statuses)


def answers_in(folder: Path) -> Answers:
    said = Answers({}, {})
    # somebody may have cleaned /tmp
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            what, _, rank = entry.name.partition(".")
            if what == "status" and rank.isdigit():
                said.statuses[int(rank)] = Path(entry.path).read_bytes()
            elif what == "started" and rank.isdigit():
                said.started[int(rank)] = Started(Path(entry.path).read_bytes())
    return said


def _may_live(started: Started) -> bool:
    if not started.here:
        return True
    try:
        os.kill(started.init, 0)
    except ProcessLookupError:
        return False
    return True
