"""`flowos image`: images made, kept, found, checked, given away and removed."""

import argparse
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from flowos._dataclasses import replace
from flowos.cli._live import Live
from flowos.cli._output import note, print_folded, print_json
from flowos.cli._shared import add_json, add_store, top_command, with_example
from flowos.model import UsageError, to_json

if TYPE_CHECKING:
    from flowos.model import Argv, Progress
    from flowos.operations.image import Inspected, ListedImage, MadeImage, Recipe

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

_EXIT_DAMAGED = 1
_EVERY_SECONDS = 10.0


class _Steps(Live):
    """Details move: without a terminal they are shown every ten seconds only."""

    _step = ""
    _shown_at = 0.0

    def show(self, progress: "Progress") -> None:
        from flowos.engine import now

        if self._rewrites:
            super().show(progress)
            return
        if progress.doing != self._step:
            self._step, self._shown_at = progress.doing, now()
            super().show(replace(progress, detail=""))
        elif now() - self._shown_at >= _EVERY_SECONDS:
            self._shown_at = now()
            super().show(progress)


def add(commands: "Commands") -> None:
    image = top_command(
        commands,
        "image",
        "flowos image import docker://docker.io/library/debian:12",
    )
    commands = image.add_subparsers(dest="subcommand", metavar="COMMAND", required=True)
    _add_build(commands)
    _add_import(commands)
    _add_export(commands)
    for name, about, example in (
        ("ls", "the images in your library", "flowos image ls"),
        ("inspect", "what an image says of itself and how it was made", "flowos image inspect fio"),
        (
            "verify",
            "is an image still what it was? its digest is taken anew",
            "flowos image verify fio",
        ),
        (
            "rm",
            "forget a name; remove the image with its last name, or, by digest, with all its names",
            "flowos image rm fio",
        ),
    ):
        command = with_example(commands, name, about, example)
        if name != "ls":
            also = "" if name == "rm" else ", or a path"
            command.add_argument(
                "image", metavar="IMAGE", help=f"a name, 6 digits of a digest{also}"
            )
        if name == "inspect":
            add_store(command)
        if name == "rm":
            command.add_argument(
                "--dry-run", action="store_true", help="show what would be done only"
            )
        add_json(command)


def _add_import(commands: "Commands") -> None:
    command = with_example(
        commands,
        "import",
        "make an image of a folder, an archive, a registry's image, a squashfs or a SIF",
        "flowos image import docker-save.tar --name tools",
    )
    command.add_argument("source", metavar="SOURCE", help="a path, or docker://HOST/NAME:TAG")
    _add_making(command)


def _add_build(commands: "Commands") -> None:
    command = with_example(
        commands,
        "build",
        "make an image by a recipe, as an ordinary user",
        "flowos image build --suite bookworm --include python3,openmpi-bin --name mpi",
    )
    command.add_argument(
        "recipe",
        nargs="?",
        metavar="RECIPE",
        help="a Dockerfile, a folder with one, or an Apptainer definition (*.def)",
    )
    command.add_argument("--suite", default="", help="a Debian suite instead of a recipe")
    command.add_argument(
        "--include", default="", metavar="PACKAGE,...", help="packages to add to those of the suite"
    )
    command.add_argument(
        "--context", metavar="DIR", help="what COPY takes from (default: RECIPE's)"
    )
    command.add_argument("--builder", default="", help="podman, buildah or ch-image (default: any)")
    command.add_argument(
        "--build-arg",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a build argument of the Dockerfile; its value is not recorded",
    )
    command.add_argument(
        "--base",
        action="append",
        default=[],
        metavar="NAME=IMAGE",
        help="what FROM NAME means: an image of your library (default: the one of that name)",
    )
    _add_making(command)


def _add_export(commands: "Commands") -> None:
    command = with_example(
        commands,
        "export",
        "write an image to a file or folder that others can use",
        "flowos image export mpi mpi.oci",
    )
    command.add_argument("image", metavar="IMAGE", help="a name, or 6 digits of a digest")
    command.add_argument("to", type=Path, metavar="TO", help="a place that is not there yet")
    command.add_argument(
        "--form",
        choices=("squashfs", "folder", "tar", "oci-archive"),
        default="",
        help="default: by the ending of TO: .sqfs, .tar, .tar.gz, .oci, none: a folder",
    )
    add_store(command)
    add_json(command)


def _add_making(command: argparse.ArgumentParser) -> None:
    command.add_argument("--name", metavar="NAME", help="what to call it")
    command.add_argument(
        "--arch", default="", metavar="ARCH", help="amd64, arm64 ... (default: this machine's)"
    )
    command.add_argument("--dry-run", action="store_true", help="show what would be run only")
    add_store(command)
    add_json(command)


def run(args: argparse.Namespace) -> int:
    return _COMMANDS[args.subcommand](args)


def _import(args: argparse.Namespace) -> int:
    from flowos.operations import image

    if args.dry_run:
        return _show_planned(image.planned_import(args.source, args.arch), args.json)
    with _Steps(sys.stderr, quiet=args.quiet) as steps:
        made = image.import_image(
            args.source,
            name=args.name,
            architecture=args.arch,
            url=args.store,
            on_progress=steps.show,
        )
    _show_made(made, args.json)
    return 0


def _build(args: argparse.Namespace) -> int:
    from flowos.operations import image

    recipe = _recipe(args)
    if args.dry_run:
        return _show_planned(image.planned_build(recipe, args.arch), args.json)
    name = image.name_of(recipe) if args.name is None else args.name
    with _Steps(sys.stderr, quiet=args.quiet) as steps:
        made = image.build_image(
            recipe, name=name, architecture=args.arch, url=args.store, on_progress=steps.show
        )
    _show_made(made, args.json)
    return 0


def _recipe(args: argparse.Namespace) -> "Recipe":
    from flowos.operations import image

    if bool(args.suite) == bool(args.recipe):
        raise UsageError("give one recipe, or --suite NAME")
    if args.suite:
        packages = tuple(word.strip() for word in args.include.split(",") if word.strip())
        return image.Suite(name=args.suite, packages=packages)
    if args.include:
        raise UsageError("--include goes with --suite; a recipe names its packages itself")
    bases = tuple(_pair("--base", word) for word in args.base)
    return image.recipe_at(
        Path(args.recipe),
        context=Path(args.context) if args.context else None,
        builder=args.builder,
        arguments=tuple(_pair("--build-arg", word) for word in args.build_arg),
        bases=tuple((name, Path(image.found(base).source)) for name, base in bases),
    )


def _pair(option: str, word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not name or not equals:
        raise UsageError(f"{option} {word!r:.80}: expected NAME=VALUE")
    return name, value


def _export(args: argparse.Namespace) -> int:
    from flowos.operations import image

    path = image.export_image(args.image, args.to, form=args.form, url=args.store)
    print_json({"path": str(path)}) if args.json else print(path)
    return 0


def _show_planned(planned: "tuple[Argv, ...]", as_json: bool) -> int:
    if as_json:
        print_json(planned)
    else:
        print("\n".join(shlex.join(argv) for argv in planned))
    return 0


def _ls(args: argparse.Namespace) -> int:
    from flowos.operations import image

    listed = image.images()
    if args.json:
        print_json(listed)
        return 0
    if not listed:
        print_folded("no image yet: `flowos image import` or `flowos image build` makes one")
        return 0
    rows = [("NAME", "DIGEST", "SIZE", "MADE"), *map(_row, listed)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print_folded("  ".join(cells).rstrip())
    return 0


def _inspect(args: argparse.Namespace) -> int:
    from flowos.operations import image

    seen = image.inspect(args.image, args.store)
    if args.json:
        print_json(seen)
    else:
        _show_inspected(seen)
    return _code(seen.complaint)


def _verify(args: argparse.Namespace) -> int:
    from flowos.operations import image

    seen = image.verify(args.image)
    if args.json:
        print_json({**to_json(seen), "ok": seen.ok})
    elif not seen.expected:
        print(f"{args.image}: {seen.have}, which your library has not: nothing to compare it with")
    elif seen.ok:
        print(f"{args.image}: as it was made, {seen.have}")
    return _code(seen.complaint)


def _code(complaint: str) -> int:
    if complaint:
        print(f"flowos image: {complaint}", file=sys.stderr)
    return _EXIT_DAMAGED if complaint else 0


def _rm(args: argparse.Namespace) -> int:
    from flowos.operations import image

    done = image.planned_removal(args.image) if args.dry_run else image.remove_image(args.image)
    print_json(done) if args.json else print("\n".join(done))
    return 0


def _show_made(made: "MadeImage", as_json: bool) -> None:
    for words in made.notes:
        note(f"note: {words}")
    if as_json:
        print_json(made)
        return
    again = " (it was there already)" if made.was_there else ""
    print(f"{made.name}  {made.image.digest}{again}")
    note(f"{made.path}  {_size(made.image.size_bytes)}")


def _show_inspected(seen: "Inspected") -> None:
    config = seen.config
    lines = [("file", str(seen.path)), ("digest", seen.digest)]
    lines += [("entry point", " ".join(config.entrypoint)), ("command", " ".join(config.command))]
    lines += [("folder", str(config.cwd or ""))]
    lines += [("variable", "=".join(pair)) for pair in config.variables]
    lines += [("name", name) for name in seen.names]
    if kept := seen.kept:
        tools = ", ".join(" ".join(tool) for tool in kept.made_with)
        lines += [("architecture", kept.architecture), ("made", kept.at)]
        lines += [("of", kept.source), ("its digest", kept.source_digest)]
        lines += [("recipe", kept.recipe_digest), ("by", tools)]
    for what, value in lines:
        if value:
            print(f"{what:<13} {value}")


def _row(listed: "ListedImage") -> tuple[str, str, str, str]:
    digest = listed.digest.removeprefix("sha256:")[:12]
    size = _size(listed.size_bytes) if listed.path else "not here"
    return listed.name or "-", digest, size, listed.at[:16].replace("T", " ") or "-"


def _size(size_bytes: int) -> str:
    from flowos.report import number

    return number(size_bytes, "byte")


_COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "build": _build,
    "export": _export,
    "import": _import,
    "ls": _ls,
    "inspect": _inspect,
    "verify": _verify,
    "rm": _rm,
}
