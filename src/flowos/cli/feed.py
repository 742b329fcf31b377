"""`flowos feed`: training data brought to the node before a job, and what is there."""

import argparse
import sys
from datetime import datetime
from typing import TYPE_CHECKING

from flowos.cli._feed_options import as_options
from flowos.cli._interrupts import how_ended
from flowos.cli._live import on_a_terminal
from flowos.cli._output import columns, print_folded, print_json
from flowos.cli._shared import add_json, positive, top_command, with_example
from flowos.model import FeedError, UsageError, to_plain

if TYPE_CHECKING:
    from flowos.operations.feed import (
        CachedSource,
        CacheSelection,
        FillPlan,
        PrefillResult,
    )

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

_EXIT_DAMAGED = _EXIT_FAILED = 1
_SUFFIXES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SUFFIXES |= {f"{letter}I": 1 << 10 * at for at, letter in enumerate("KMGT", 1)}
_ONE_DATA_SET = "several are one data set, of the samples of all"
_CACHED_DATA_SETS = (
    "or a KEY of feed ls; several are the data set that feed warm makes of them, or, where that is "
    "not cached, each its own (default: all that is in the cache folder)"
)


def add(commands: "Commands") -> None:
    feed = top_command(
        commands,
        "feed",
        "flowos feed warm /lustre/imagenet/train --cache /local/nvme/cache",
    )
    commands = feed.add_subparsers(dest="subcommand", metavar="COMMAND", required=True)
    _add_warm(commands)
    _add_ls(commands)
    _add_stat(commands)
    _add_verify(commands)
    _add_clear(commands)


def _add_warm(commands: "Commands") -> None:
    command = with_example(
        commands,
        "warm",
        "bring a data set into the cache, all of it or what fits; goes on where it was stopped",
        "flowos feed warm /lustre/imagenet/train --cache /local/nvme/cache --max-bytes 800G",
    )
    _add_source(command, required=True)
    command.add_argument(
        "--max-bytes", type=size, metavar="N", help="cache at most so much, as 800G or 64GiB"
    )
    command.add_argument(
        "--min-free",
        type=size,
        metavar="N",
        help="leave so much of the file system free (default 1GiB)",
    )
    command.add_argument("--dry-run", action="store_true", help="list only, say what would be read")
    add_json(command)


def _add_ls(commands: "Commands") -> None:
    command = with_example(
        commands,
        "ls",
        "the data sets in the cache, last used first; one that is not in use is removed when "
        "another needs its room, the longest unused first",
        "flowos feed ls --cache /local/nvme/cache",
    )
    command.add_argument("--cache", required=True, metavar="DIR", help="the cache folder")
    add_json(command)


def _add_stat(commands: "Commands") -> None:
    command = with_example(
        commands,
        "stat",
        "how much of each data set is in the cache, and how many processes use it",
        "flowos feed stat --cache /local/nvme/cache",
    )
    _add_source(command)
    add_json(command)


def _add_verify(commands: "Commands") -> None:
    command = with_example(
        commands,
        "verify",
        "read all that is cached; what is damaged is forgotten, and fetched again when needed",
        "flowos feed verify --cache /local/nvme/cache",
    )
    _add_source(command)
    command.add_argument(
        "--source",
        action="store_true",
        help="read all of SOURCE too: say what has changed there, and forget it",
    )
    add_json(command)


def _add_clear(commands: "Commands") -> None:
    command = with_example(
        commands,
        "clear",
        "remove what is cached, never while a process uses it, and nothing else",
        "flowos feed clear /lustre/imagenet/train --cache /local/nvme/cache --yes",
    )
    _add_source(command)
    command.add_argument("--yes", action="store_true", help="do not ask")
    command.add_argument("--dry-run", action="store_true", help="say what would be removed")
    add_json(command)


def _add_source(command: argparse.ArgumentParser, *, required: bool = False) -> None:
    command.add_argument(
        "where",
        metavar="SOURCE",
        nargs="+" if required else "*",
        help="a folder, shards, token arrays or a URL, as fo.Feed takes it; "
        + (_ONE_DATA_SET if required else _CACHED_DATA_SETS),
    )
    command.add_argument("--cache", required=True, metavar="DIR", help="the cache folder")
    command.add_argument("--member", default="", metavar="NAME", help="of tar shards, as fo.Feed's")
    command.add_argument(
        "--extensions",
        metavar="A,B",
        help="the files that are samples, as jpg,png, or pictures (as a feed that decodes pictures "
        "has them), or all (default)",
    )
    command.add_argument("--dtype", metavar="TYPE", help="of token arrays")
    command.add_argument("--length", type=positive, metavar="N", help="of a token array's samples")
    command.add_argument("--column", default="", metavar="NAME", help="of Parquet files")
    command.add_argument("--label-column", default="", metavar="NAME", help="of Parquet files")


def size(word: str) -> int:
    """Bytes, for argparse: 800G, 64GiB, 1.5T."""
    text = word.upper().removesuffix("B")
    digits = text.rstrip("KMGTI")
    try:
        number = float(digits) * _SUFFIXES[text[len(digits) :]]
        if not 1 <= number < 1 << 62:
            raise ValueError
    except (ValueError, KeyError):
        raise argparse.ArgumentTypeError(f"{word!r} is no size such as 800G or 64GiB") from None
    return int(number)


def run(args: argparse.Namespace) -> int:
    try:
        return _COMMANDS[args.subcommand](args)
    except FeedError as error:  # `Feed` is what Python calls it
        error.args = (as_options(str(error).removeprefix("Feed: ")),)
        raise


def _warm(args: argparse.Namespace) -> int:
    from flowos.operations import feed

    selection = _selection(args)
    with on_a_terminal(args) as on_progress:
        if args.dry_run:
            return _show_planned(feed.planned(selection, on_progress), args.json)
        known = {"max_bytes": args.max_bytes, "min_free_bytes": args.min_free}
        given = {name: value for name, value in known.items() if value is not None}
        done = feed.prefilled(selection, feed.CacheLimits(**given), on_progress)
    _show_prefilled(done, args.json)
    if done.interrupted:
        return how_ended()[0]
    return _EXIT_FAILED if done.prefill.missing or not done.kept.cached else 0


def _show_planned(planned: "FillPlan", as_json: bool) -> int:
    if as_json:
        print_json(planned)
        return 0
    unknown = "sizes not known before they are read"
    bytes_ = unknown if planned.bytes is None else _size(planned.bytes)
    print_folded(
        f"{_safe(planned.source)}: {planned.samples} samples, {bytes_}; {planned.cached} are cached"
    )
    return 0


def _show_prefilled(done: "PrefillResult", as_json: bool) -> None:
    kept, at = done.kept, done.prefill
    if as_json:
        print_json(done)
    elif done.already_cached == kept.samples and not at.source_bytes:
        print_folded(
            f"all {kept.samples} samples were cached already, {_size(kept.bytes)}: nothing to read"
        )
    else:
        rate = _rate(at.source_bytes / done.seconds) if done.seconds > 0 else ""
        binds = f"; {done.binding}" if done.binding else ""
        print_folded(
            f"{kept.cached} of {kept.samples} samples are cached, {_size(kept.bytes)}; "
            f"{_size(at.source_bytes)} read from the source in {done.seconds:.1f} s, {rate}{binds}"
        )
    if done.interrupted:
        print(
            f"flowos feed: interrupted: {kept.cached} of {kept.samples} samples are cached and "
            "stay; the same command goes on from there",
            file=sys.stderr,
        )
    if at.full:
        print(f"flowos feed: no more is kept: {at.complaint}", file=sys.stderr)
    if at.missing:
        print(f"flowos feed: {at.missing} samples could not be read", file=sys.stderr)


def _ls(args: argparse.Namespace) -> int:
    from flowos.operations import feed

    found = sorted(feed.state(feed.CacheSelection(cache=args.cache)), key=lambda kept: -kept.used)
    if args.json:
        print_json(found)
        return 0
    rows: list[tuple[str, ...]] = [("KEY", "SIZE", "SAMPLES", "LAST USED", "IN USE BY", "SOURCE")]
    rows += [_listed(kept) for kept in found]
    for line in _table(rows):
        print_folded(line)
    return 0


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    """Where a terminal is too narrow for it, a line for each cell, after the column's name."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = ((f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)
    lines = ["  ".join(cells).rstrip() for cells in padded]
    if not sys.stdout.isatty() or max(map(len, lines)) <= columns():
        return lines
    names, *each = rows
    room = max(map(len, names))
    return [
        f"{name:<{room}}  {cell}" for row in each for name, cell in zip(names, row, strict=True)
    ]


def _listed(kept: "CachedSource") -> tuple[str, ...]:
    used = datetime.fromtimestamp(kept.used) if kept.used else None
    return (
        kept.folder.name,
        "-" if kept.owner else _size(kept.bytes),
        _samples_text(kept),
        f"{used:%Y-%m-%d %H:%M}" if used else "never",
        str(kept.processes or "-"),
        _safe(kept.source),
    )


def _samples_text(kept: "CachedSource") -> str:
    if kept.owner:
        return f"{kept.owner}'s"
    return "damaged" if kept.damaged else f"{kept.cached}/{kept.samples}"


def _stat(args: argparse.Namespace) -> int:
    from flowos.operations import feed

    found = feed.state(_selection(args))
    if args.json:
        print_json(found)
        return 0
    for kept in found:
        print_folded(f"{_safe(kept.source)}\n    {_state_text(kept)}")
    return 0


def _state_text(kept: "CachedSource") -> str:
    if kept.owner:
        return f"belongs to {kept.owner}, who alone can look into it and remove it"
    if kept.damaged:
        return (
            f"damaged, {_size(kept.bytes)}: nothing can be read; the next job fills it anew, "
            f"flowos feed clear {kept.folder.name} removes it"
        )
    share = f" ({kept.cached / kept.samples:.1%})" if kept.samples else ""
    words = [f"{kept.cached} of {kept.samples} samples{share}", _size(kept.bytes)]
    if kept.unverified:
        words.append(f"{kept.unverified} from before the last start of the machine")
    words.append(
        f"{kept.processes} processes use it" if kept.processes != 1 else "1 process uses it"
    )
    return ", ".join(words)


def _verify(args: argparse.Namespace) -> int:
    from flowos.operations import feed

    with on_a_terminal(args) as on_progress:
        done = list(
            feed.verified(_selection(args), with_source=args.source, on_progress=on_progress)
        )
    if args.json:
        print_json(done)
    for each in () if args.json else done:
        read = f"{each.kept.cached} samples read, {each.damaged} damaged"
        unread = each.kept.damaged or each.kept.owner
        print_folded(f"{_safe(each.kept.source)}\n    {_state_text(each.kept) if unread else read}")
        for name in each.changed:
            print_folded(f"    changed at the source: {_safe(name)}")
        if each.compared:
            print_folded(
                f"    {len(each.changed)} changed at the source, {each.missing} not there any more"
            )
    bad = any(each.damaged or each.changed or each.kept.damaged for each in done)
    return _EXIT_DAMAGED if bad else 0


def _clear(args: argparse.Namespace) -> int:
    from flowos.operations import feed

    found = feed.removable(_selection(args))
    if not args.dry_run and not args.yes:
        _ask(found)
    rows = [
        _plain(kept) | ({} if args.dry_run else {"freed_bytes": feed.cleared(kept)})
        for kept in found
    ]
    if args.json:
        print_json(rows)
        return 0
    did = "would remove" if args.dry_run else "removed"
    for kept in found:
        what = "what was damaged" if kept.damaged else f"{kept.cached} samples"
        print_folded(f"{did} {what}, {_size(kept.bytes)}, of {_safe(kept.source)}")
    return 0


def _plain(kept: "CachedSource") -> dict[str, object]:
    plain = to_plain(kept)
    assert isinstance(plain, dict)
    return plain


def _ask(found: "tuple[CachedSource, ...]") -> None:
    for kept in found:
        print(f"{_safe(kept.source)}: {_state_text(kept)}", file=sys.stderr)
    if not sys.stdin.isatty():
        raise UsageError("clear: asks only at a terminal; to remove this unasked, give --yes")
    print("remove this? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError("clear: nothing was removed")


def _selection(args: argparse.Namespace) -> "CacheSelection":
    from flowos.operations import feed

    endings = args.extensions
    files = feed.sample_filter(
        endings if endings in (None, "all", "pictures") else endings.split(",")
    )
    of_data = feed.asked(
        args.member, args.dtype, args.length, args.column, args.label_column, files
    )
    where = args.where[0] if len(args.where) == 1 else args.where or None
    return feed.CacheSelection(cache=args.cache, where=where, asked=of_data)


def _safe(name: str) -> str:
    from flowos.report import safe

    return safe(name)


def _size(bytes_: float) -> str:
    from flowos.report import number

    return number(bytes_, "byte")


def _rate(bytes_per_second: float) -> str:
    from flowos.report import number

    return number(bytes_per_second, "byte/s")


_COMMANDS = {"warm": _warm, "ls": _ls, "stat": _stat, "verify": _verify, "clear": _clear}
