"""Numbers of papers, from `published/SUITE.toml`: facts that stand in their text and tables."""

import tomllib
from importlib.resources import files

from flowos.model import Paper, from_plain


def published(suite: str) -> Paper:
    """The paper of a suite, with its numbers."""
    return read_published(
        files("flowos").joinpath("report", "published", f"{suite}.toml").read_text(encoding="utf-8")
    )


def read_published(text: str) -> Paper:
    """Raises ValueError if it is not of this form, with the place."""
    whole = tomllib.loads(text)
    numbers = [
        {**each, "levels": [list(pair) for pair in each.get("levels", {}).items()]}
        for each in whole.get("numbers", [])
    ]
    return from_plain(Paper, {**whole, "numbers": numbers}, "paper")
