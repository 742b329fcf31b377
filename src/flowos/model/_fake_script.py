"""The script of a fake pool: what happens to each slice that is asked for.

Each takes the next line, and what is beyond the last is had at once:

    wait SECONDS REASON          it waits that long first, for this reason; several wait in turn
    refuse REASON                it is refused
    lose NUMBER after SECONDS    its node of this number, from 1, is lost then
    end after SECONDS            its lease ends then

with `;` between them. Who asks for more nodes than are free waits until others free theirs.
"""

import re
from dataclasses import dataclass
from typing import Literal

_STEP = re.compile(
    r"wait (?P<wait>\d+(?:\.\d+)?)(?: (?P<reason>.+))?|refuse(?: (?P<refuse>.+))?"
    r"|lose (?P<lose>\d+) after (?P<lost>\d+(?:\.\d+)?)|end after (?P<end>\d+(?:\.\d+)?)"
)


@dataclass(frozen=True, slots=True)
class FakeStep:
    """One step of a line of the script. reason: why it waits or is refused."""

    what: Literal["wait", "refuse", "lose", "end"]
    seconds: float = 0.0
    reason: str = ""
    node: int = 0


def read_script(line: str) -> tuple[FakeStep, ...]:
    """The steps of one line. Raises ValueError for a word that it does not know."""
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
