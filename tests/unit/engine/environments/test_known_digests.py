"""Digests of images are kept, by machine: a folder that all share has another device on each."""

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from flowos.engine import keep
from flowos.engine.environments._digest import file_digest, file_identity
from flowos.engine.environments._images import image_at
from flowos.model import Image, to_plain


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = tmp_path / "image"
    file.write_bytes(b"hsqs" + bytes(36) + (96).to_bytes(8, "little") + bytes(48))
    while not file_identity(file).settled:
        time.sleep(0.01)
    return file


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What is read whole."""
    read: list[Path] = []

    def reads(path: Path) -> str:
        read.append(path)
        return file_digest(path)

    monkeypatch.setattr(f"{image_at.__module__}.file_digest", reads)
    return read


def on(node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each node has a device number of its own for the same file."""
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename=node))
    identity = file_identity

    def other(path: Path) -> object:
        found = identity(path)
        return type(found)(f"{node} {found.words}", found.settled)

    monkeypatch.setattr(f"{image_at.__module__}.file_identity", other)


def test_each_node_reads_a_shared_image_once(
    image: Path, read: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for node in ("n1", "n2", "n1", "n2"):
        with monkeypatch.context() as there:
            on(node, there)
            image_at(image)
    assert read == [image, image]


def test_what_an_earlier_version_kept_is_used(image: Path, read: list[Path]) -> None:
    kept = Image(form="squashfs", digest="sha256:1", source=image)
    identity = file_identity(image).words
    keep("image-digests", str(image), {"identity": identity, "image": to_plain(kept)})
    assert image_at(image) == kept
    assert read == []
