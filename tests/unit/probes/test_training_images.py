"""Images of the probe `training`: on storage that answers late, several files are under way."""

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy")
pytest.importorskip("PIL")

PROGRAMS = Path(__file__).parents[3] / "src/flowos/probes/programs"
PATIENCE_SECONDS = 60.0


@pytest.fixture(autouse=True)
def at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (PROGRAMS, PROGRAMS / "resnet50"):
        monkeypatch.syspath_prepend(folder)


def met(work: Callable[..., Any], others: int) -> Callable[..., Any]:
    """The work, begun once so many are at the same place; BrokenBarrierError if they are not."""
    barrier = threading.Barrier(others)

    def waits(*given: Any) -> Any:
        barrier.wait(PATIENCE_SECONDS)
        return work(*given)

    return waits


def made(folder: Path, own: Path, count: int = 68) -> list[Path]:
    import torch_training

    torch_training.make_images(folder, str(own), count, 4, 16)
    return sorted(path.relative_to(folder) for path in folder.rglob("*.jpg"))


def test_images_are_written_and_dropped_several_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch_training

    own, images = tmp_path / "own", tmp_path / "images"
    own.mkdir()
    for module, name in ((shutil, "copyfile"), (os, "posix_fadvise")):
        monkeypatch.setattr(module, name, met(getattr(module, name), 4))
    assert torch_training.FILES_AT_ONCE >= 4
    assert len(made(images, own)) == 68 + 4
    assert torch_training.dropped(images)
    assert [*own.iterdir()] == []


def test_images_are_the_same_each_time_and_only_so_many_differ(tmp_path: Path) -> None:
    own, images = tmp_path / "own", tmp_path / "images"
    own.mkdir()
    names = made(images, own)
    assert [str(name.parent) for name in names[::17]] == [f"train/c{n:03d}" for n in range(4)] + [
        "val/c000"
    ]
    train = sorted((images / "train").rglob("*.jpg"), key=lambda path: path.name)
    assert [path.name for path in train] == [f"{n:06d}.jpg" for n in range(68)]
    contents = [path.read_bytes() for path in train]
    assert contents[64:] == contents[:4]
    assert len({*contents}) == 64
    (images / names[0]).write_bytes(b"kept")
    assert made(images, own) == names
    assert (images / names[0]).read_bytes() == b"kept", "they are there: none is made"
    assert len(made(images, own, 8)) == 12
