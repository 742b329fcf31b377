"""What a task of a program waits for."""

from typing import NamedTuple


class WaitingTask(NamedTuple):
    """Tasks of one flow on one node that are alike. state: runs or waits; why: what it waits for.

    node: "" of what waits for one. number: so many of them.
    """

    flow: str
    node: str
    task: str
    state: str
    why: str = ""
    number: int = 1
