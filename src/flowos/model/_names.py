"""Words for messages: names that are misspelt, counts."""

from collections.abc import Iterable


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """The end of a complaint, with the name that is most like it; "" if none is.

    >>> did_you_mean("straem", ["gemm", "stream"])
    "; did you mean 'stream'?"
    """
    from difflib import get_close_matches  # slow to import

    names = [*known]
    near = get_close_matches(given, names, 1) or _but_for_case(given, names)
    return "".join(f"; did you mean {name!r}?" for name in near)


def _but_for_case(given: str, names: list[str]) -> list[str]:
    return [name for name in names if name.casefold() == given.casefold()][:1]


def counted(count: int, noun: str) -> str:
    """As 1 node, 2 nodes."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
