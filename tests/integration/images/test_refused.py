"""Bad input gets one clear line, and leaves nothing behind."""

import gzip
import io
import os
import tarfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from flowos.drivers.images import CONFIG
from flowos.model import EnvironmentRefused, UsageError
from flowos.operations import image
from flowos.operations.environment import environment

from .conftest import left
from .sources import (
    SMALL,
    digest,
    docker_parts,
    oci_parts,
    overwritten,
    sif,
    special,
    squashed,
    tar,
    with_long_names,
    written_folder,
    written_root,
    written_tar,
)

LAYER = tar(SMALL)


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, library: Path) -> Iterator[None]:
    yield
    assert left(library) == set()
    assert left(tmp_path / "room") == set()


def without(parts: dict[str, bytes], beginning: str) -> dict[str, bytes]:
    return {name: text for name, text in parts.items() if not name.startswith(beginning)}


def flipped(parts: dict[str, bytes], text: bytes) -> dict[str, bytes]:
    return {
        name: each[:-1] + bytes([each[-1] ^ 1]) if each == text else each
        for name, each in parts.items()
    }


def recorded(**records: str) -> bytes:
    """A tar of one file with PAX records as a broken program writes them."""
    info = tarfile.TarInfo("member")
    info.pax_headers, info.size = records, 5
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(info, io.BytesIO(b"hello"))
    return out.getvalue()


SIF = sif(b"hsqs" + bytes(200))
BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is no archive and no image"),
    "text": (b"Dear Ada\n" * 100, "is no archive and no image"),
    "cut in a header": (LAYER[:700], "truncated"),
    "cut in a file": (LAYER[:1300], "truncated"),
    "cut between files": (LAYER[:2048], "it is truncated: its end mark is missing"),
    "gzip cut": (b"\x1f\x8b\x08\0\0\0\0\0\0\3" + b"x" * 50, "damaged or truncated"),
    "no member": (gzip.compress(tar([])), "an empty archive"),
    "out by its name": (tar([("../../etc/x", b"x")]), r"'../../etc/x' leads out of the image"),
    "out by a hard link": (
        tar([special("x", tarfile.LNKTYPE, "../../etc/passwd")]),
        "leads out of the image",
    ),
    "hard link to nothing": (
        tar([special("x", tarfile.LNKTYPE, "none")]),
        "'x' is a hard link to 'none', which is no file",
    ),
    "a link to nothing": (tar([("l", "")]), "entry 'l' is a symbolic link to a path of 0 bytes"),
    "a long name": (tar([("n" * 256, b"")]), "entry 'n{119} has a path of 256 bytes"),
    "a zero byte": (recorded(path="p\0q"), r"entry 'p\\x00q' has a zero byte"),
    "no size": (recorded(size="aaaa"), "entry 'member' has no size: 'aaaa'"),
    "a size below zero": (recorded(size="-5"), "'member' has no size: '-5'|truncated"),
    "a size below zero after a member": (
        tar([("first", b"")])[:512] + recorded(size="-5"),
        "'member' has no size: '-5'|truncated",
    ),
    "no time": (recorded(mtime="nan"), "entry 'member' has no time: nan"),
    "a time without end": (recorded(mtime="inf"), "entry 'member' has no time: inf"),
    "a chain of long names": (with_long_names(3000), "it is no tar, damaged or truncated"),
    "a configuration without end": (
        tar([(CONFIG, b"[" * 100_000)]),
        r"its \.flowos/image\.json is no JSON",
    ),
    "a configuration that is no text": (
        tar([(CONFIG, b"\xff\xfe")]),
        r"its \.flowos/image\.json is no JSON",
    ),
    "no layer": (tar([*without(docker_parts([LAYER]), digest(LAYER)[7:]).items()]), "incomplete"),
    "no blob": (tar([*without(oci_parts([LAYER]), "blobs").items()]), "incomplete: blobs/sha256/"),
    "no index": (tar([*without(oci_parts([LAYER]), "index").items()]), "index.json is missing"),
    "a changed docker layer": (
        tar([*flipped(docker_parts([LAYER]), LAYER).items()]),
        "a layer is damaged or another one: its digest is sha256:.*, not sha256:",
    ),
    "a changed oci layer": (
        tar([*flipped(oci_parts([LAYER], compress=False), LAYER).items()]),
        "a layer is damaged or another one: its digest is sha256:.*, not sha256:",
    ),
    "a docker archive of old": (
        tar([("repositories", b"{}"), ("ab/layer.tar", LAYER)]),
        "before 2015: save it anew",
    ),
    "a cut squashfs": (b"hsqs" + bytes(300), "damaged or truncated|version"),
    "a cut sif": (SIF[:-10], "it is truncated: .* bytes"),
    "a damaged sif": (SIF[:88] + b"\xff" * 40, "SIF header is damaged"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_source_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    text, says = BAD[name]
    (tmp_path / "x.tar").write_bytes(text)
    with pytest.raises(EnvironmentRefused, match=says) as refused:
        image.import_image(str(tmp_path / "x.tar"))
    assert "\n" not in str(refused.value)
    assert str(tmp_path / "x.tar") in str(refused.value)
    assert not (tmp_path.parent / "etc").exists()


def test_what_has_a_chain_of_long_names_cannot_be_entered(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(with_long_names(3000))
    with pytest.raises(EnvironmentRefused, match=r"x\.tar: neither a folder nor a squashfs"):
        environment(tmp_path / "x.tar")


def test_a_truncated_real_squashfs_is_refused(tmp_path: Path) -> None:
    root = written_root(tmp_path / "root", [("bin/noise", os.urandom(300_000))])
    whole = squashed(root, tmp_path / "x.sqfs").read_bytes()
    (tmp_path / "x.sqfs").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(EnvironmentRefused, match=r"x\.sqfs: it is damaged or truncated"):
        image.import_image(str(tmp_path / "x.sqfs"))


def test_a_squashfs_of_ours_that_was_damaged_on_its_way_is_refused(tmp_path: Path) -> None:
    """It would be kept byte for byte, and so is read whole first."""
    words = b" ".join(b"%d" % number for number in range(200_000))
    image.import_image(str(written_root(tmp_path / "root", [("bin/words", words)])), name="once")
    file = image.export_image("once", tmp_path / "x.sqfs")
    image.remove_image("once")
    file.chmod(0o600)
    with pytest.raises(EnvironmentRefused, match=r"x\.sqfs: it is damaged or truncated"):
        image.import_image(str(overwritten(file)))


def test_a_layout_for_other_processors_names_them(tmp_path: Path) -> None:
    parts = oci_parts([LAYER])
    platform = b'{"platform": {"architecture": "mips64", "os": "linux"}, "mediaType"'
    parts["index.json"] = parts["index.json"].replace(b'{"mediaType"', platform)
    with pytest.raises(EnvironmentRefused, match="it is for mips64, not for"):
        image.import_image(str(written_folder(parts, tmp_path / "x")))


def test_what_is_not_there_or_neither_file_nor_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentRefused, match=r"there is no .*/none; a registry's image is"):
        image.import_image(str(tmp_path / "none"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(EnvironmentRefused, match="neither a file nor a folder"):
        image.import_image(str(tmp_path / "pipe"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    root = written_root(tmp_path / "x")
    (root / "etc/shadow").write_text("secret")
    (root / "etc/shadow").chmod(0)
    with pytest.raises(EnvironmentRefused, match=r"etc/shadow may not be read by you"):
        image.import_image(str(root))


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "a/b",
        "bare",
        "-x",
        "",
        "x y",
        "x@ch-run",
        "0123456789ab",
        "x\n",
        "a" * 101,
        "x.sqfs",
    ],
)
def test_a_name_that_could_be_taken_for_something_else_is_refused(
    name: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="image name"):
        image.import_image(str(written_root(tmp_path / "x")), name=name)


@pytest.mark.parametrize("member", ["manifest.json", "index.json"])
def test_descriptions_too_large_to_be_any_are_refused(member: str, tmp_path: Path) -> None:
    """A hostile archive must not fill the memory."""
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        info = tarfile.TarInfo(member)
        info.size = 70 << 20
        archive.addfile(info, io.BytesIO(bytes(info.size)))
        if member == "index.json":
            archive.addfile(tarfile.TarInfo("oci-layout"))
    with pytest.raises(
        EnvironmentRefused, match="a JSON description of 73400320 bytes is too large"
    ):
        image.import_image(str(tmp_path / "x.tar"))


def test_a_tool_that_is_missing_is_named_with_the_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = str(written_root(tmp_path / "x"))
    monkeypatch.setenv("PATH", str(tmp_path))
    mends = r"no mksquashfs to make an image with; mend: sudo apt-get install .* squashfs-tools"
    with pytest.raises(EnvironmentRefused, match=mends):
        image.import_image(source)
    with pytest.raises(EnvironmentRefused, match="no skopeo to fetch an image with; mend: sudo"):
        image.import_image("docker://localhost/x")
    with pytest.raises(EnvironmentRefused, match="no mmdebstrap to make a Debian suite with"):
        image.build_image(image.Suite(name="bookworm"), name="x")


def test_a_library_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    source = str(written_root(tmp_path / "x"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    with pytest.raises(EnvironmentRefused, match=r"cannot keep the image: .*file/flowos"):
        image.import_image(source, url=str(tmp_path / "store.db"))


def test_no_safe_room_to_work_in_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = tmp_path / "room" / f"flowos-{os.geteuid()}"
    room.mkdir()
    room.chmod(0o777)
    with pytest.raises(EnvironmentRefused, match=r"is open to others; mend: chmod 700"):
        image.import_image(str(written_root(tmp_path / "x")))
    room.rmdir()
    room.symlink_to(tmp_path)
    with pytest.raises(EnvironmentRefused, match="belongs to another user"):
        image.import_image(str(written_root(tmp_path / "y")))
    monkeypatch.setenv("TMPDIR", "/proc/none")
    with pytest.raises(EnvironmentRefused, match="cannot work in /proc/none"):
        image.import_image(str(written_root(tmp_path / "z")))


def test_a_recipe_that_is_not_there_and_an_unknown_builder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentRefused, match=r"no recipe there \(Dockerfile or Containerfile"):
        image.recipe_at(tmp_path)
    (tmp_path / "Dockerfile").write_text("FROM scratch")
    with pytest.raises(EnvironmentRefused, match="the context is no folder"):
        image.recipe_at(tmp_path, context=tmp_path / "none")
    with pytest.raises(UsageError, match="no builder is called 'docker'; known are buildah"):
        image.build_image(image.recipe_at(tmp_path, builder="docker"), name="x")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("RUN true", "/Dockerfile: no FROM in it: say what the image begins with"),
        ("FROM x\nCOPY none /", "/Dockerfile: it copies none, which is not in /"),
    ],
)
def test_a_recipe_that_cannot_be_built_is_told_before_any_builder_is_started(
    text: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Dockerfile").write_text(text)
    monkeypatch.setenv("PATH", str(tmp_path))
    for action in (partial(image.build_image, name="x"), image.planned_build):
        with pytest.raises(EnvironmentRefused, match=says):
            action(image.recipe_at(tmp_path))


def test_a_definition_needs_apptainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.def").write_text("Bootstrap: scratch")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentRefused, match=r"no apptainer to build it with; mend: see https"):
        image.build_image(image.recipe_at(tmp_path / "x.def"), name="x")


@pytest.mark.parametrize("word", ["docker://", "docker://h/UPPER", "docker://h/x@md5"])
def test_a_reference_that_is_none_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match="expected docker://HOST/NAME"):
        image.import_image(word, name="x")


def test_written_archives_are_what_they_are_meant_to_be(tmp_path: Path) -> None:
    """So that what is refused above is refused for its damage."""
    for number, parts in enumerate((docker_parts([LAYER]), oci_parts([LAYER]))):
        file = written_tar(parts, tmp_path / f"{number}.tar")
        image.import_image(str(file), name="fine")
    for name in ("fine",):
        image.remove_image(image.inspect(name).digest)
