"""What a test runs inside a `Box` whose nodes are apart: tasks that take and give files.

`python moves_files.py KEYS [PROGRAM]` holds two nodes, which do not see the /tmp of this machine.
KEYS: of their pool, as JSON. PROGRAM: of MPI; "ray" runs tasks in Ray. Prints a line for each thing
that is done with files.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import flowos as fo
from flowos.engine import HeldSlice, RaySlice, SliceOptions, provider_of
from flowos.model import Ask, FlowosError, Pool

_MAX_SECONDS = 240.0
OWN = Path(tempfile.mkdtemp(prefix="own-", dir="/tmp"))
TIME = (1_700_000_000, 1_700_000_000)


@fo.task
def reads(path: fo.File, own: str) -> str:
    """Where it lies under its own name, what is in it, and whether it may be written."""
    place = "there" if str(path) == own else "copy"
    return f"{place} {path.name} {path.read_text()} {os.access(path, os.W_OK)}"


@fo.task
def plants(path: str, text: str) -> str:
    """A file of this node alone, which no result names."""
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text(text)
    os.utime(path, TIME)
    return text


@fo.task
def lists(path: fo.File) -> str:
    return " ".join(f"{each.name}={each.read_text()}" for each in sorted(path.iterdir()))


@fo.task
def writes(path: str, text: str) -> fo.File:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@fo.task
def same(path: fo.File) -> fo.File:
    return path


@dataclass(frozen=True)
class Case:
    mesh: fo.File
    more: dict[str, Path | None]


@fo.task
def within(files: list[fo.File], case: Case) -> str:
    """What is in them, and whether each is a copy."""
    taken = [*files, case.mesh, case.more["b"]]
    copied = all(Path(str(each)).parent != OWN for each in taken)
    return f"{' '.join(Path(str(each)).read_text() for each in taken)} {copied} {case.more['c']}"


@fo.task
def split(path: str, texts: list[str]) -> tuple[list[fo.File], Case]:
    Path(path).parent.mkdir(exist_ok=True)
    files = [Path(f"{path}{i}") for i in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    return files, Case(files[0], {"b": files[1], "c": None})


@fo.task
def blocked(path: str) -> dict[str, list[fo.File]]:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("lost")
    return {"a": [file]}


@fo.task
def everywhere(files: list[fo.File], shared: str, _: int) -> str:
    """The node and what is in the files, once tasks run on both nodes."""
    node, end = os.environ["SLURMD_NODENAME"], time.monotonic() + _MAX_SECONDS
    Path(shared, f"on-{node}").touch()
    while len(list(Path(shared).glob("on-*"))) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    return f"{node} {' '.join(Path(str(file)).read_text() for file in files)}"


@fo.task(needs=fo.Needs(cores=2))
def wide(path: str, source: fo.File) -> fo.File:
    """In Ray, that finds its node."""
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text(f"of {Path(str(source)).read_text()}")
    return Path(path)


def say(*words: object) -> None:
    line = " ".join(map(str, words))
    sys.stdout.write(line.replace(str(OWN), "OWN") + "\n")
    sys.stdout.flush()


def made(name: str, text: str, folder: Path = OWN) -> Path:
    (folder / name).write_text(text)
    return folder / name


def takes(s: HeldSlice, shared: Path) -> None:
    given = made("given.txt", "given")
    file, own = fo.flow_input("file", fo.File), fo.flow_input("own", fo.str_)
    prints = fo.command(["cat", fo.In("f")], stdout="said")
    printed = fo.flow_output(prints(file))
    os.chdir(OWN)  # no node sees it
    say("command", *s.run(printed, given))
    os.chdir(shared)
    given.write_text("changed")
    say("command", *s.run(printed, given))
    read = fo.flow_output(reads(file, own))
    say("task", *s.run(read, given, str(given)))
    seen = made("seen.txt", "seen", shared)
    say("task", *s.run(read, seen, str(seen)))
    say("task", *s.run(fo.flow_output(reads(given, str(given)))))
    (OWN / "folder").mkdir()
    made("a", "1", OWN / "folder")
    made("b", "2", OWN / "folder")
    say("folder", *s.run(fo.flow_output(lists(file)), OWN / "folder"))
    items = [made(f"item{i}", f"item {i}") for i in range(6)]
    said = [str(result[0]) for result in s.map(read, [(each, str(each)) for each in items])]
    say("map", *said)
    say("same", *s.run(fo.flow_output(same(file)), given))


def twins(s: HeldSlice) -> None:
    """Of equal size and time, as two copies that a tool has made; their contents may differ."""
    file = fo.flow_input("file", fo.File)
    own, text = fo.flow_input("own", fo.str_), fo.flow_input("text", fo.str_)
    plant, read = fo.flow_output(plants(own, text)), fo.flow_output(reads(file, own))
    for name, content in (("twin.txt", "else"), ("like.txt", "ours")):
        twin = made(name, "ours")
        os.utime(twin, TIME)
        s.run(plant, str(twin), content)
        say("twin", *s.run(read, twin, str(twin)))


def gives(s: HeldSlice) -> None:
    path, text = fo.flow_input("path", fo.str_), fo.flow_input("text", fo.str_)
    written = writes(path, text)
    flow = fo.flow_output(written)
    out = OWN / "new/out.txt"
    for words in ("first", "second"):
        say("output", *s.run(flow, str(out), words), out.read_text())
    prints = fo.command(["cat", fo.In("f")], stdout="said")
    say("both", *s.run(fo.flow_output(prints(written)), str(OWN / "both.txt"), "both"))
    blocked = made("blocked", "a file here, a folder there")
    try:
        s.run(flow, str(blocked / "out.txt"), "lost")
    except FlowosError as error:
        say("refused", type(error).__name__, error)
    copies = fo.command(["cp", fo.In("f"), fo.Out("copy")])
    (kept,) = s.run(fo.flow_output(copies(fo.flow_input("f", fo.File))), OWN / "given.txt")
    say("kept", Path(str(kept)).is_relative_to(OWN / "kept"), Path(str(kept)).read_text())


def parts(s: HeldSlice) -> None:
    files, case = fo.flow_input("files", list[fo.File]), fo.flow_input("case", Case)
    a, b, c = (made(f"part-{name}", name) for name in "abc")
    given = Case(c, {"b": b, "c": None})
    say("parts", *s.run(fo.flow_output(within(files, case)), [a, str(b)], given))
    say("constants", *s.run(fo.flow_output(within([a, b], given))))
    say("unchanged", given == Case(c, {"b": b, "c": None}))
    path, texts = fo.flow_input("path", fo.str_), fo.flow_input("texts", list[str])
    given_back: list[Any] = s.run(
        fo.flow_output(*split(path, texts)), str(OWN / "split"), ["x", "y"]
    )
    found, its = given_back
    say("split", *(each.read_text() for each in [*found, its.mesh, its.more["b"]]), its.more["c"])
    chain: Any = split(path, texts)
    say("again", *s.run(fo.flow_output(within(*chain)), str(OWN / "on"), ["x", "y"]))
    try:
        s.run(fo.flow_output(blocked(path)), str(OWN / "blocked/part.txt"))
    except FlowosError as error:
        say("refused", type(error).__name__, str(error).partition(" lies")[0])


def ranks(s: HeldSlice, program: str) -> None:
    words = ["sh", "-c", 'cat "$1" && exec "$0"', program, fo.In("file")]
    task = fo.command(words, stdout="said", needs=fo.Needs(ranks=2, nodes=2))
    flow = fo.flow_output(fo.gang(task, mpi="openmpi")(fo.flow_input("file", fo.File)))
    said = str(s.run(flow, made("mesh", "mesh\n"))[0])
    say("ranks", *sorted(said.splitlines()))


def on_ray(s: HeldSlice, shared: Path) -> None:
    given = made("given.txt", "given")
    file, own = fo.flow_input("file", fo.File), fo.flow_input("own", fo.str_)
    read = fo.flow_output(reads(file, own))
    say("task", *s.run(read, given, str(given)))
    items = [made(f"item{i}", f"item {i}") for i in range(6)]
    say("map", *(str(row[0]) for row in s.map(read, [(each, str(each)) for each in items])))
    constant = fo.flow_output(reads(given, str(given)))
    say("constant", *s.run(constant))
    given.write_text("changed")
    say("constant", *s.run(constant))
    path, texts = fo.flow_input("path", fo.str_), fo.flow_input("texts", list[str])
    chain: Any = split(path, texts)
    there = [everywhere(chain[0], str(shared), i) for i in range(4)]
    found: list[Any] = s.run(fo.flow_output(chain[1], *there), str(OWN / "s"), ["x", "y"])
    say("split", found[0].mesh.read_text(), *sorted({*found[1:]}))
    places = [(given, str(OWN / f"wide{i}")) for i in range(4)]
    list(s.map(fo.flow_output(wide(own, file)), places))
    say("wide", *(Path(place).read_text() for _, place in places))
    blocked = made("blocked", "a file here, a folder there")
    written = fo.flow_output(writes(path, "lost"))
    try:
        s.run(written, str(blocked / "out.txt"))
    except FlowosError as error:
        say("refused", type(error).__name__, str(error).partition(" lies")[0])


def main(keys: str, program: str = "") -> None:
    pool = Pool(name="files", nodes=2, **json.loads(keys))
    options = SliceOptions(cores=2, folder=OWN / "kept")
    kind = HeldSlice
    if program == "ray":
        kind, options = RaySlice, replace(options, workers="ray", fuse="none")
    try:
        with kind(provider_of(pool), Ask(nodes=2), options) as s:
            if program == "ray":
                on_ray(s, Path(pool.shared))
            else:
                takes(s, Path(pool.shared))
                twins(s)
                gives(s)
                parts(s)
                if program:
                    ranks(s, program)
            say("note", *(note for note in s.notes if "is copied to" in note))
    finally:
        shutil.rmtree(OWN)


if __name__ == "__main__":
    main(*sys.argv[1:])
