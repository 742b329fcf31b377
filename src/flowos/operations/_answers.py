"""What this program answers to other terminals of its user. What it needs is loaded when asked."""

import json
from collections.abc import Callable


def _tasks(name: str = "") -> str:
    from flowos.engine import waiting_tasks

    return json.dumps(waiting_tasks(name))


ANSWERS: dict[str, Callable[..., str]] = {"tasks": _tasks}
"""By verb; each gets the words of the request."""


def answer(verb: str, words: list[str]) -> str:
    """A request; "" of one that this program does not know."""
    try:
        return ANSWERS[verb](*words)
    except (KeyError, TypeError):  # of another version of FlowOS
        return ""
