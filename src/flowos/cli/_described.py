"""What a parser has, for pages that are made of it: the site's, and those of `man`."""

import argparse
from collections.abc import Iterator


def subparsers(of: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """By the name of the command; a parser that has none has no further names."""
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def options(of: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """Each option or word as it is given, and what help says of it."""
    for action in of._actions:
        if action.dest == "help" or argparse.SUPPRESS in (action.help, action.dest):
            continue
        if isinstance(action, argparse._SubParsersAction):
            continue
        yield _given(action), _said(action)


def _given(action: argparse.Action) -> str:
    value = str(action.metavar or ("" if action.nargs == 0 else action.dest.upper()))
    words = ", ".join(action.option_strings) or value
    if action.option_strings and action.nargs != 0:
        chosen = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else value
        words = f"{words} {chosen}"
    return words


def _said(action: argparse.Action) -> str:
    return (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")
