"""`flowos image`: images made, kept, found, checked, given away and removed."""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from flowos.cli._live import Live
from flowos.cli._shared import add_json, add_store, with_example
from flowos.model import to_plain

if TYPE_CHECKING:
    from flowos.acts.image import Inspected, Listed, Made
    from flowos.acts.measure import Progress

Commands = "argparse._SubParsersAction[argparse.ArgumentParser]"
_EXIT_DAMAGED = 1


class _Steps(Live):
    """What follows two spaces moves: only a terminal, where the line is rewritten, shows it."""

    def show(self, progress: "Progress") -> None:
        moving = self._rewrites
        super().show(
            progress if moving else replace(progress, doing=progress.doing.partition("  ")[0])
        )


def add(commands: Commands) -> None:
    image = with_example(
        commands,
        "image",
        "images: root file systems that work can be started in, each one file in your library",
        "flowos image import docker://docker.io/library/debian:12",
    )
    deeds = image.add_subparsers(dest="deed", metavar="DEED", required=True)
    _add_import(deeds)
    for name, about, example in (
        ("ls", "the images in your library", "flowos image ls"),
        ("inspect", "what an image says of itself and how it was made", "flowos image inspect fio"),
        (
            "verify",
            "is an image still what it was? its digest is taken anew",
            "flowos image verify fio",
        ),
        ("rm", "forget a name; remove the image with its last name", "flowos image rm fio"),
    ):
        deed = with_example(deeds, name, about, example)
        if name != "ls":
            deed.add_argument("image", metavar="IMAGE", help="a name, or 6 digits of a digest")
        add_store(deed)
        add_json(deed)


def _add_import(deeds: Commands) -> None:
    deed = with_example(
        deeds,
        "import",
        "make an image of a folder, an archive, a registry's image, a squashfs or a SIF",
        "flowos image import docker-save.tar --name tools",
    )
    deed.add_argument("source", metavar="SOURCE", help="a path, or docker://HOST/NAME:TAG")
    _add_making(deed)


def _add_making(deed: argparse.ArgumentParser) -> None:
    deed.add_argument("--name", default="", metavar="NAME", help="what to call it")
    deed.add_argument(
        "--arch", default="", metavar="ARCH", help="amd64, arm64 ... (default: this machine's)"
    )
    add_store(deed)
    add_json(deed)


def run(args: argparse.Namespace) -> int:
    return _DEEDS[args.deed](args)


def _import(args: argparse.Namespace) -> int:
    from flowos.acts import image

    live = _Steps(sys.stderr)
    try:
        made = image.import_image(
            args.source, name=args.name, architecture=args.arch, url=args.store, emit=live.show
        )
    finally:
        live.end()
    _show_made(made, args.json)
    return 0


def _ls(args: argparse.Namespace) -> int:
    from flowos.acts import image

    listed = image.images(args.store)
    if args.json:
        print(json.dumps([_plain_listed(each) for each in listed], indent=1))
        return 0
    if not listed:
        print("no image yet: `flowos image import` or `flowos image build` makes one")
        return 0
    rows = [("NAME", "DIGEST", "SIZE", "MADE", "OF"), *map(_row, listed)]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        print("  ".join((*cells, row[4])).rstrip())
    return 0


def _inspect(args: argparse.Namespace) -> int:
    from flowos.acts import image

    seen = image.inspect(args.image, args.store)
    if args.json:
        print(json.dumps(to_plain(seen), indent=1))
    else:
        _show_inspected(seen)
    return 0


def _verify(args: argparse.Namespace) -> int:
    from flowos.acts import image

    seen = image.verify(args.image, args.store)
    if args.json:
        print(json.dumps({**to_plain(seen), "ok": seen.ok}, indent=1))
    elif seen.ok:
        print(f"{args.image}: as it was made, {seen.have}")
    else:
        print(
            f"flowos image: {seen.path} is damaged: it has {seen.have}, not {seen.expected}; "
            "remove it and make it again",
            file=sys.stderr,
        )
    return 0 if seen.ok else _EXIT_DAMAGED


def _rm(args: argparse.Namespace) -> int:
    from flowos.acts import image

    done = image.remove(args.image, args.store)
    print(json.dumps(list(done)) if args.json else "\n".join(done))
    return 0


def _show_made(made: "Made", as_json: bool) -> None:
    for note in made.notes:
        print(f"note: {note}", file=sys.stderr)
    if as_json:
        print(json.dumps(to_plain(made), indent=1))
        return
    again = " (it was there already)" if made.was_there else ""
    print(f"{made.image.name}  {made.image.digest}{again}")
    print(f"{made.path}  {_size(made.image.size_bytes)}", file=sys.stderr)


def _show_inspected(seen: "Inspected") -> None:
    config = seen.config
    lines = [("file", str(seen.path)), ("digest", seen.digest)]
    lines += [("entry point", " ".join(config.entrypoint)), ("command", " ".join(config.command))]
    lines += [("folder", str(config.cwd or ""))]
    lines += [("variable", "=".join(pair)) for pair in config.variables]
    for kept in seen.kept:
        tools = ", ".join(" ".join(tool) for tool in kept.made_with)
        lines += [("name", kept.name), ("architecture", kept.architecture), ("made", kept.at)]
        lines += [("of", kept.source), ("its digest", kept.source_digest)]
        lines += [("recipe", kept.recipe_digest), ("by", tools)]
    for what, value in lines:
        if value:
            print(f"{what:<13} {value}")


def _row(listed: "Listed") -> tuple[str, str, str, str, str]:
    kept = listed.image
    digest = kept.digest.removeprefix("sha256:")[:12]
    size = _size(kept.size_bytes) if listed.path else "not here"
    return kept.name or "-", digest, size, kept.at[:16].replace("T", " ") or "-", kept.source


def _plain_listed(listed: "Listed") -> object:
    return {**to_plain(listed.image), "path": to_plain(listed.path)}


def _size(size_bytes: int) -> str:
    from flowos.report import number

    return number(size_bytes, "byte")


_DEEDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "import": _import,
    "ls": _ls,
    "inspect": _inspect,
    "verify": _verify,
    "rm": _rm,
}
