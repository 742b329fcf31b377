"""Our layers against umoci, which unpacks them for real, on images made at random."""

import hashlib
import os
import random
import shutil
import stat
import subprocess
import tarfile
from pathlib import Path

import pytest

from flowos.drivers.images.tree import File, Folder, Symlink, walk
from flowos.operations._images._sources import open_source

from .sources import MACHINE, Member, has, oci_parts, special, tar, written_folder

NAMES = ("a", "b", "c", "d")


def random_layer(dice: random.Random, below: set[str]) -> tuple[bytes, set[str]]:
    """A layer as a builder writes one: parents first, links to what is there, whiteouts for it."""
    members: list[Member | tarfile.TarInfo] = []
    folders, files = {""}, set[str]()
    for _ in range(dice.randint(3, 12)):
        above = dice.choice(sorted(folders))
        path = f"{above}/{dice.choice(NAMES)}".lstrip("/")
        if path in folders | files:
            continue
        what = dice.random()
        if what < 0.4:
            members.append((path, None))
            folders.add(path)
        elif what < 0.75 or not files:
            members.append((path, dice.randbytes(dice.randint(0, 40))))
            files.add(path)
        elif what < 0.85:
            members.append(special(path, tarfile.LNKTYPE, dice.choice(sorted(files))))
            files.add(path)
        else:
            members.append((path, dice.choice(("a", "../b", "/c", "none"))))
            folders.discard(path)
    taken = folders | {_name(member) for member in members}
    hidden = [path for path in sorted(below - taken) if dice.random() < 0.3]
    members += [(_whiteout(path), b"") for path in hidden if _above(path) in folders]
    return tar(members), below | files


def _name(member: Member | tarfile.TarInfo) -> str:
    return member.name if isinstance(member, tarfile.TarInfo) else member[0]


def _above(path: str) -> str:
    return path.rpartition("/")[0]


def _whiteout(path: str) -> str:
    return f"{_above(path)}/.wh.{path.rpartition('/')[2]}".lstrip("/")


def ours(layout: Path, scratch: Path) -> dict[str, str]:
    tree = open_source(layout, "oci-layout", scratch, MACHINE).tree
    return {item.path: _described(item.node) for item in walk(tree)}


def _described(node: File | Folder | Symlink) -> str:
    if isinstance(node, Folder):
        return f"folder {node.mode:o}"
    if isinstance(node, Symlink):
        return f"-> {node.target}"
    with Path(node.content.file).open("rb") as file:
        file.seek(node.content.offset)
        text = file.read(node.content.size_bytes)
    return f"file {node.mode:o} {hashlib.sha256(text).hexdigest()[:12]}"


def theirs(layout: Path, to: Path) -> dict[str, str]:
    words = ["umoci", "unpack", "--rootless", "--image", f"{layout}:x", str(to)]
    subprocess.run(words, check=True, capture_output=True)
    seen = {}
    for at, folders, files in os.walk(to / "rootfs"):
        for name in (*folders, *files):
            path = Path(at, name)
            mode = path.lstat().st_mode
            text = f"{stat.S_IMODE(mode):o}"
            if stat.S_ISLNK(mode):
                seen[str(path.relative_to(to / "rootfs"))] = f"-> {path.readlink()}"
            elif stat.S_ISDIR(mode):
                seen[str(path.relative_to(to / "rootfs"))] = f"folder {text}"
            else:
                digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
                seen[str(path.relative_to(to / "rootfs"))] = f"file {text} {digest}"
    return seen


@pytest.mark.parametrize("seed", range(12))
def test_layers_are_applied_as_umoci_applies_them(seed: int, tmp_path: Path) -> None:
    assert has("umoci"), "umoci is missing: tools/setup test installs it"
    dice, below, layers = random.Random(seed), set[str](), []
    for _ in range(dice.randint(1, 4)):
        layer, below = random_layer(dice, below)
        layers.append(layer)
    layout = written_folder(oci_parts(layers), tmp_path / "layout")
    (tmp_path / "scratch").mkdir()
    assert ours(layout, tmp_path / "scratch") == theirs(layout, tmp_path / "bundle")
    shutil.rmtree(tmp_path / "bundle")
