"""The far storage of `benchmarks/training_on_nodes.py`: nodes read images by their links."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _far_storage import FarStorage

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SIZE = 300_000


@pytest.fixture
def far(namespaces: None, monkeypatch: pytest.MonkeyPatch) -> "Iterator[FarStorage]":  # noqa: ARG001
    for folder in (BENCHMARKS / "feed", BENCHMARKS):
        monkeypatch.syspath_prepend(folder)
    from _far_storage import FarStorage
    from places import NotHere

    try:
        box = FarStorage(2, 1.0, 1000.0)
    except NotHere as why:
        pytest.skip(str(why))
    with box:
        yield box


def carried(far: "FarStorage") -> list[int]:
    return [link["bytes"] for link in far.traffic()]


def test_each_node_reads_by_a_link_of_its_own_every_time(far: "FarStorage") -> None:
    file = far.far / "a.jpg"
    file.write_bytes(bytes(SIZE))
    assert carried(far) == [0, 0]
    for count in (1, 2):
        done = far.run("srun", "-N2", "md5sum", str(file))
        assert (len(done.stdout.splitlines()), len({*done.stdout.split()})) == (2, 2), done.stderr
        assert carried(far) == [count * SIZE] * 2, "no page is kept"
    one = far.run("srun", "-N1", "-w", "n2", "cp", str(file), str(far.shared / "b"))
    assert one.stderr == ""
    assert carried(far) == [2 * SIZE, 3 * SIZE]
    assert (far.folder / "content/b").stat().st_size == SIZE


def test_a_node_sees_what_another_one_makes_writes_and_renames(far: "FarStorage") -> None:
    at = far.far / "made/in"
    makes = f"mkdir -p {at}; echo one >{at}/part; mv {at}/part {at}/whole; cat {at}/whole"
    made = far.run("srun", "-N1", "-w", "n1", "sh", "-c", makes)
    assert made.stdout == "one\n", made.stderr
    changes = f"cat {at}/whole; echo two >>{at}/whole"
    assert far.run("srun", "-N1", "-w", "n2", "sh", "-c", changes).stdout == "one\n"
    reads = f"cat {at}/whole; rm {at}/whole; ls {at}"
    assert far.run("srun", "-N1", "-w", "n1", "sh", "-c", reads).stdout == "one\ntwo\n"
    assert [*at.iterdir()] == []


def test_a_folder_with_the_number_of_one_that_is_gone_has_not_its_files(far: "FarStorage") -> None:
    """Many at once, as other programs take the numbers that are free, too."""
    asks = ("srun", "-N1", "-w", "n1", "ls", "-R", str(far.far))
    seen: set[int] = set()
    again = 0
    for name in ("first", "second", "third"):
        inner = [far.far / f"{name}-{i}" / f"of-{name}-{i}" for i in range(32)]
        for folder in inner:
            folder.mkdir(parents=True)
        numbers = {each.stat().st_ino for folder in inner for each in (folder, folder.parent)}
        again += len(numbers & seen)
        seen |= numbers
        found = [word for word in far.run(*asks).stdout.split() if word.startswith("of-")]
        assert sorted(found) == sorted(folder.name for folder in inner)
        listed = far.run("srun", "-N1", "-w", "n1", "ls", "-d", *map(str, inner)).stdout
        assert sorted(listed.split()) == sorted(map(str, inner))
        for folder in inner:
            folder.rmdir()
            folder.parent.rmdir()
    if not again:
        pytest.skip("this file system gave no number again")
    assert f"{far.far}:" in far.run(*asks).stdout
