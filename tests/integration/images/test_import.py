"""Whatever an image is made of, the same files make the same image."""

import os
import shutil
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from flowos.drivers.images import CONFIG
from flowos.model import EnvironmentRefused, ImageConfig, UsageError
from flowos.operations import image

from .sources import (
    SMALL,
    digest,
    docker_parts,
    in_image,
    names_in,
    oci_parts,
    sif,
    special,
    squashed,
    tar,
    written_folder,
    written_root,
    written_tar,
)

LAYERS = (tar(SMALL[:3]), tar(SMALL[3:]))


def compressed(how: str) -> Callable[[Path], Path]:
    def make(at: Path) -> Path:
        file = at / f"x.tar.{how}"
        with tarfile.open(file, f"w:{how}") as archive:  # type: ignore[call-overload]
            archive.add(written_root(at / "root"), arcname=".")
        return file

    return make


def plain_tar(at: Path) -> Path:
    (at / "x.tar").write_bytes(tar(SMALL))
    return at / "x.tar"


def sif_file(at: Path) -> Path:
    squashfs = squashed(written_root(at / "root"), at / "r.sqfs").read_bytes()
    (at / "x.sif").write_bytes(sif(squashfs))
    return at / "x.sif"


WITHOUT_CONFIG: dict[str, Callable[[Path], Path]] = {
    "folder": lambda at: written_root(at / "x"),
    "tar": plain_tar,
    "tar.gz": compressed("gz"),
    "tar.xz": compressed("xz"),
    "tar.bz2": compressed("bz2"),
    "squashfs": lambda at: squashed(written_root(at / "root"), at / "x.img"),
    "sif": sif_file,
}
WITH_CONFIG: dict[str, Callable[[Path], Path]] = {
    "docker archive": lambda at: written_tar(docker_parts(LAYERS), at / "x.tar"),
    "oci archive": lambda at: written_tar(oci_parts(LAYERS), at / "x.tar"),
    "oci archive, not compressed": lambda at: written_tar(
        oci_parts(LAYERS, compress=False), at / "x.tar"
    ),
    "oci layout": lambda at: written_folder(oci_parts(LAYERS), at / "x"),
}


@pytest.fixture(params=WITHOUT_CONFIG)
def bare_source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    return WITHOUT_CONFIG[request.param](tmp_path / "source")


@pytest.fixture(params=WITH_CONFIG)
def configured_source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    return WITH_CONFIG[request.param](tmp_path / "source")


def test_the_same_files_from_any_source_are_the_same_image(
    bare_source: Path, tmp_path: Path
) -> None:
    plain = image.import_image(str(written_root(tmp_path / "plain")))
    made = image.import_image(str(bare_source), name="x")
    assert made.image.digest == plain.image.digest
    assert in_image(made.path, "bin/hello") == b"hello\n"
    assert names_in(made.path)["bin/hi"] == "lrwxrwxrwx -> hello"
    assert made.image.source == str(tmp_path / "plain"), "where it first came from"


def test_what_an_image_says_of_itself_comes_along(configured_source: Path) -> None:
    made = image.import_image(str(configured_source), name="x")
    assert in_image(made.path, "etc/motd") == b"welcome\n"
    config = image.inspect("x").config
    assert config.entrypoint == ("/bin/hello",)
    assert config.variables == (("WHO", "world"),)
    assert str(config.cwd) == "/etc"


def test_the_folder_to_start_in_is_created(tmp_path: Path) -> None:
    root = written_root(tmp_path / "x", [*SMALL, (CONFIG, b'{"cwd": "/not/there"}')])
    made = image.import_image(str(root))
    assert names_in(made.path)["not/there"] == "drwxr-xr-x"


def test_an_image_of_several_archives_forms_is_one_and_the_same(tmp_path: Path) -> None:
    digests = set()
    for number, make in enumerate(WITH_CONFIG.values()):
        (at := tmp_path / str(number)).mkdir()
        digests.add(image.import_image(str(make(at)), name="x").image.digest)
    assert len(digests) == 1


def test_the_same_folder_written_in_another_order_at_another_time_is_the_same_image(
    tmp_path: Path,
) -> None:
    members = [(f"d/{name}", name.encode()) for name in ("one", "two", "three", "four")]
    one = written_root(tmp_path / "one", members)
    two = written_root(tmp_path / "two", members[::-1])
    for path in two.rglob("*"):
        os.utime(path, (10**9, 10**9))
    first = image.import_image(str(one))
    second = image.import_image(str(two), name="again")
    assert second.image.digest == first.image.digest
    assert second.was_there
    assert not first.was_there


def test_an_image_does_not_depend_on_the_second_in_which_it_is_made(
    tmp_path: Path, library: Path
) -> None:
    source = str(written_root(tmp_path / "x"))
    first = image.import_image(source)
    image.remove_image("x")
    assert list(library.glob("*.sqfs")) == []
    time.sleep(1.1)
    assert image.import_image(source).image.digest == first.image.digest


def test_modes_long_and_foreign_names_and_hard_links_are_kept(tmp_path: Path) -> None:
    long = "d/" + "n" * 150
    foreign = os.fsdecode(b"d/caf\xc3\xa9 \xff\n'\"$(id)")
    root = written_root(tmp_path / "x", [("d", None), (long, b"l"), (foreign, b"f")])
    (root / "d/suid").write_bytes(b"s")
    (root / "d/suid").chmod(0o4711)
    (root / "again").hardlink_to(root / long)
    made = image.import_image(str(root))
    image.export_image("x", tmp_path / "out")
    out = tmp_path / "out"
    assert (out / foreign).read_bytes() == b"f"
    assert (out / long).stat().st_ino == (out / "again").stat().st_ino
    assert names_in(made.path)["d/suid"] == "-rws--x--x"


def test_device_nodes_pipes_and_sockets_are_left_out(tmp_path: Path) -> None:
    root = written_root(tmp_path / "x")
    os.mkfifo(root / "pipe")
    assert "pipe" not in names_in(image.import_image(str(root)).path)
    nodes = [special("dev/null", tarfile.CHRTYPE), special("fifo", tarfile.FIFOTYPE)]
    (tmp_path / "n.tar").write_bytes(tar([*SMALL, *nodes]))
    made = image.import_image(str(tmp_path / "n.tar"))
    assert not {"dev/null", "fifo"} & {*names_in(made.path)}


def test_python_needs_not_compile_anew_in_an_image(tmp_path: Path) -> None:
    root = written_root(tmp_path / "x")
    (root / "m.py").write_text("x = 1")
    os.utime(root / "m.py", (10**9, 10**9))
    (root / "__pycache__").mkdir()
    head = b"\xa7\x0d\x0d\x0a" + bytes(4) + (10**9).to_bytes(4, "little") + b"\5\0\0\0code"
    (root / "__pycache__/m.cpython-311.pyc").write_bytes(head)
    made = image.import_image(str(root))
    kept = in_image(made.path, "__pycache__/m.cpython-311.pyc")
    assert kept == head[:8] + bytes(4) + head[12:]


def test_a_sparse_file_of_an_archive_is_whole_in_the_image(tmp_path: Path) -> None:
    root = written_root(tmp_path / "root")
    with (root / "holes").open("wb") as file:
        file.seek(1 << 20)
        file.write(b"end")
    words = [
        "tar",
        "--sparse",
        "--format=gnu",
        "-C",
        str(root),
        "-cf",
        str(tmp_path / "s.tar"),
        ".",
    ]
    assert os.spawnvp(os.P_WAIT, "tar", words) == 0
    assert (tmp_path / "s.tar").stat().st_size < 1 << 20
    made = image.import_image(str(tmp_path / "s.tar"))
    assert in_image(made.path, "holes") == bytes(1 << 20) + b"end"


@pytest.mark.skipif(not shutil.which("zstd"), reason="no zstd to make one with")
def test_a_zstd_archive_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(tar(SMALL))
    words = ["zstd", "-q", "--rm", str(tmp_path / "x.tar")]
    assert os.spawnvp(os.P_WAIT, "zstd", words) == 0
    made = image.import_image(str(tmp_path / "x.tar.zst"))
    assert in_image(made.path, "bin/hello") == b"hello\n"


def test_upper_layers_hide_replace_and_link(tmp_path: Path) -> None:
    lower = tar([("a/x", b"x"), ("a/y", b"y"), ("b/z", b"z"), ("link", "a")])
    linked = special("c", tarfile.LNKTYPE, "a/y")
    upper = tar(
        [("a/.wh.x", b""), ("b/.wh..wh..opq", b""), ("b/n", b"n"), ("link/w", b"w"), linked]
    )
    made = image.import_image(str(written_tar(docker_parts([lower, upper]), tmp_path / "x.tar")))
    names = names_in(made.path)
    assert {"a/y", "b/n", "a/w", "c"} <= {*names}
    assert not {"a/x", "b/z", "a/.wh.x", "b/.wh..wh..opq", "link/w"} & {*names}


def test_a_sif_says_how_it_wants_to_be_run(tmp_path: Path) -> None:
    scripts = [
        (".singularity.d/runscript", b"#!/bin/sh"),
        (".singularity.d/env/10-docker2singularity.sh", b'export PATH="/opt/x/bin:/bin"\n'),
        (".singularity.d/env/90-environment.sh", b"export WHO=Ada PATH=/y:$PATH\n"),
        (".singularity.d/env/99-base.sh", b"export NOT=ours\n"),
    ]
    root = written_root(tmp_path / "root", [*SMALL, *scripts])
    squashfs = squashed(root, tmp_path / "r.sqfs").read_bytes()
    (tmp_path / "plain.sif").write_bytes(sif(squashfs))
    image.import_image(str(tmp_path / "plain.sif"))
    entrypoint = ("/bin/sh", "/.singularity.d/runscript")
    variables = (("PATH", "/y:/opt/x/bin:/bin"), ("WHO", "Ada"))
    config = image.inspect("plain").config
    assert (config.entrypoint, dict(config.variables)) == (entrypoint, dict(variables))
    (tmp_path / "oci.sif").write_bytes(
        sif(squashfs, oci_config=b'{"config": {"Cmd": ["/bin/hi"]}}')
    )
    image.import_image(str(tmp_path / "oci.sif"))
    assert image.inspect("oci").config == ImageConfig(command=("/bin/hi",))


def test_the_provenance_of_an_image_is_kept(tmp_path: Path) -> None:
    text = tar(SMALL)
    (tmp_path / "x.tar").write_bytes(text)
    made = image.import_image(str(tmp_path / "x.tar"))
    seen = image.inspect(made.image.digest[:19])
    assert (seen.names, seen.kept) == (("x",), made.image)
    kept = made.image
    assert kept.source_digest == digest(text)
    assert dict(kept.made_with).keys() == {"mksquashfs"}
    assert kept.size_bytes == made.path.stat().st_size


def test_a_folder_that_is_no_root_file_system_is_taken_with_a_note(tmp_path: Path) -> None:
    made = image.import_image(str(written_root(tmp_path / "x", [("letter", b"Dear Ada")])))
    assert made.notes == ("it has no /bin, /usr or /sbin: is it a root file system?",)


def test_a_folder_is_not_changed_by_being_made_an_image(tmp_path: Path) -> None:
    root = written_root(tmp_path / "x")
    before = sorted((path.name, path.lstat().st_mtime_ns) for path in root.rglob("*"))
    image.import_image(str(root))
    assert sorted((path.name, path.lstat().st_mtime_ns) for path in root.rglob("*")) == before


def test_an_image_for_another_processor_is_refused_unless_asked_for(tmp_path: Path) -> None:
    source = str(written_tar(oci_parts(LAYERS, architecture="s390x"), tmp_path / "x.tar"))
    with pytest.raises(EnvironmentRefused, match="is for s390x, not for"):
        image.import_image(source)
    assert image.import_image(source, architecture="s390x").image.architecture == "s390x"
    shell = b"\x7fELF\2\1\1" + bytes(9) + b"\2\0" + (243).to_bytes(2, "little") + bytes(44)
    root = written_root(tmp_path / "root", [("usr/bin/dash", shell), ("bin", "usr/bin")])
    (root / "usr/bin/sh").symlink_to("dash")
    with pytest.raises(EnvironmentRefused, match=r"is for riscv64, not for .* --arch riscv64"):
        image.import_image(str(root))
    root = written_root(tmp_path / "shell-less", [("hello", shell), ("usr/bin/x", b"#!/bin/sh")])
    with pytest.raises(EnvironmentRefused, match="is for riscv64, not for"):
        image.import_image(str(root))


def test_what_an_image_says_of_itself_is_less_than_the_programs_in_it(tmp_path: Path) -> None:
    shell = b"\x7fELF\2\1\1" + bytes(9) + b"\2\0" + (243).to_bytes(2, "little") + bytes(44)
    parts = oci_parts([tar([("bin/sh", shell)])], architecture="s390x")
    source = str(written_tar(parts, tmp_path / "x.tar"))
    with pytest.raises(EnvironmentRefused, match="is for riscv64, not for s390x"):
        image.import_image(source, architecture="s390x")
    assert image.import_image(source, architecture="riscv64").image.architecture == "riscv64"


def test_a_64_bit_image_may_have_a_shell_of_32_bits(tmp_path: Path) -> None:
    shell = b"\x7fELF\1\1\1" + bytes(9) + b"\2\0" + (40).to_bytes(2, "little") + bytes(44)
    parts = oci_parts([tar([("bin/sh", shell)])], architecture="arm64")
    source = str(written_tar(parts, tmp_path / "x.tar"))
    assert image.import_image(source, architecture="arm64").image.architecture == "arm64"


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("weird", "no architecture is called 'weird'; known are 386, amd64, arm, arm64, "),
        ("aarch64", r"'aarch64'; did you mean 'arm64'\?"),
        ("amd46", r"'amd46'; did you mean 'amd64'\?"),
    ],
)
def test_an_unknown_architecture_is_refused(word: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM scratch")
    recipe = image.recipe_at(tmp_path)
    for action in (
        lambda: image.import_image(str(tmp_path), architecture=word),
        lambda: image.build_image(recipe, name="x", architecture=word),
        lambda: image.planned_build(recipe, word),
        lambda: image.planned_import("docker://h/x:1", word),
    ):
        with pytest.raises(UsageError, match=says):
            action()


def test_the_architecture_of_an_image_that_was_there_stays_and_is_said(tmp_path: Path) -> None:
    root = written_root(tmp_path / "numbers", [("etc/numbers", b"1 2 3")])
    image.import_image(str(root), architecture="arm64")
    again = image.import_image(str(root), architecture="s390x")
    assert again.image.architecture == "arm64"
    assert again.notes[-1] == ("this image was there already, recorded as for arm64; it stays so")
