"""What several commands share: the store's and the output's options."""

import argparse


def with_example(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    about: str,
    example: str,
) -> argparse.ArgumentParser:
    """A parser whose help ends in an example."""
    return commands.add_parser(
        name,
        help=about,
        description=about,
        epilog=f"example: {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_store(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--store",
        metavar="URL",
        help="database of results, as an SQLAlchemy URL (default: SQLite in your data folder)",
    )


def add_json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON on standard output")


def add_run(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "run_id",
        nargs="?",
        default="last",
        metavar="RUN",
        help="a run's id, its beginning, or `last` (default)",
    )


def positive(word: str) -> int:
    """A whole number above 0, for argparse."""
    number = int(word) if word.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{word!r} is no whole number above 0")
    return number
