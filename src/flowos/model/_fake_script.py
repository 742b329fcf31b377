"""Script of a fake pool: what happens to each requested slice.

Each slice takes the next line; slices after the last line are granted at once:

    wait SECONDS REASON          wait that long first, for this reason; repeatable
    refuse REASON                refuse the slice
    lose NUMBER after SECONDS    lose the node of this number, from 1, at that time
    end after SECONDS            end the lease at that time

with `;` between them. A request for more nodes than are free waits until others are freed.
"""

import re
from typing import Literal

from flowos._dataclasses import dataclass

_STEP = re.compile(
    r"wait (?P<wait>\d+(?:\.\d+)?)(?: (?P<reason>.+))?|refuse(?: (?P<refuse>.+))?"
    r"|lose (?P<lose>\d+) after (?P<lost>\d+(?:\.\d+)?)|end after (?P<end>\d+(?:\.\d+)?)"
)


@dataclass(frozen=True, slots=True)
class FakeStep:
    """One step of a line of the script. reason: of a wait or a refusal."""

    what: Literal["wait", "refuse", "lose", "end"]
    seconds: float = 0.0
    reason: str = ""
    node: int = 0


def read_script(line: str) -> tuple[FakeStep, ...]:
    """The steps of one line. Raises ValueError for an unknown step."""
    return tuple(_step(each.strip()) for each in line.split(";") if each.strip())


def _step(text: str) -> FakeStep:
    found = _STEP.fullmatch(text)
    if found is None:
        raise ValueError(
            f"script: {text!r}: expected wait SECONDS REASON, refuse REASON, "
            "lose NUMBER after SECONDS or end after SECONDS"
        )
    if found["wait"]:
        return FakeStep("wait", float(found["wait"]), found["reason"] or "Resources")
    if found["lose"]:
        return FakeStep("lose", float(found["lost"]), node=int(found["lose"]))
    if found["end"]:
        return FakeStep("end", float(found["end"]))
    return FakeStep("refuse", reason=found["refuse"] or "no reason given")
