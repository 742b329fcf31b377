"""`flowos image`, as a person calls it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest

from flowos.cli.image import _Steps
from flowos.model import Progress

from .sources import written_root

Flowos = Callable[..., "subprocess.CompletedProcess[str]"]


def test_an_image_is_made_listed_inspected_verified_and_removed(
    flowos: Flowos, tmp_path: Path
) -> None:
    source = written_root(tmp_path / "fio")
    assert "no image yet" in flowos("image", "ls").stdout
    made = json.loads(flowos("image", "import", source, "--json").stdout)
    digest = made["image"]["digest"]
    assert flowos("image", "import", source).stdout == f"fio  {digest} (it was there already)\n"
    listed = flowos("image", "ls").stdout.splitlines()
    assert listed[0].split() == ["NAME", "DIGEST", "SIZE", "MADE"]
    assert listed[1].startswith(f"fio   {digest[7:19]}  ")
    (row,) = json.loads(flowos("image", "ls", "--json").stdout)
    assert (row["name"], row["path"]) == ("fio", made["path"])
    inspected = flowos("image", "inspect", "fio").stdout
    assert f"of            {source}\n" in inspected
    assert f"digest        {digest}\n" in inspected
    assert json.loads(flowos("image", "inspect", "fio", "--json").stdout)["digest"] == digest
    assert flowos("image", "verify", "fio").stdout == f"fio: as it was made, {digest}\n"
    assert json.loads(flowos("image", "verify", "fio", "--json").stdout)["ok"]
    exported = flowos("image", "export", "fio", tmp_path / "x.tar", "--json").stdout
    assert json.loads(exported)["path"] == str(tmp_path / "x.tar")
    shown = flowos("image", "rm", "fio", "--dry-run").stdout
    assert shown == f"would forget: fio\nwould remove: {made['path']}\n"
    assert flowos("image", "rm", "fio").stdout.splitlines()[0] == "forgotten: fio"


def test_a_damaged_image_is_told_with_both_digests_and_exit_1(
    flowos: Flowos, tmp_path: Path
) -> None:
    words = (written_root(tmp_path / "root"), "--name", "x", "--json")
    made = json.loads(flowos("image", "import", *words).stdout)
    Path(made["path"]).chmod(0o600)
    with Path(made["path"]).open("ab") as file:
        file.write(b"!")
    done = flowos("image", "verify", "x", code=1)
    assert made["image"]["digest"] in done.stderr
    assert done.stderr.count("sha256:") == 2
    assert not json.loads(flowos("image", "verify", "x", "--json", code=1).stdout)["ok"]
    assert flowos("image", "verify", made["path"], code=1).stderr == done.stderr
    seen = flowos("image", "inspect", "x", code=1)
    assert seen.stderr == done.stderr
    assert "name          x\n" in seen.stdout
    assert "not sha256:" in flowos("image", "export", "x", "out.tar", code=1).stderr
    assert f"not {made['image']['digest']}" in flowos("exec", "--env", "x", "ls", code=125).stderr


def test_a_file_outside_of_the_library_is_verified_by_its_path(
    flowos: Flowos, tmp_path: Path
) -> None:
    made = json.loads(flowos("image", "import", written_root(tmp_path / "x"), "--json").stdout)
    digest = made["image"]["digest"]
    flowos("image", "export", "x", "out.sqfs")
    same = f"./out.sqfs: as it was made, {digest}\n"
    assert flowos("image", "verify", "./out.sqfs").stdout == same
    flowos("image", "rm", "x")
    unknown = f"./out.sqfs: {digest}, which your library has not: nothing to compare it with\n"
    assert flowos("image", "verify", "./out.sqfs").stdout == unknown
    assert "none.sqfs: No such file" in flowos("image", "verify", "./none.sqfs", code=1).stderr


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("image",), 2, "COMMAND"),
        (("image", "find", "x"), 2, "there is no command 'find'"),
        (("image", "verify", "none"), 2, "flowos image: no image is called 'none'"),
        (("image", "import", "/etc/passwd"), 1, "/etc/passwd is no archive and no image"),
        (("image", "import", "docker://"), 2, "expected docker://HOST/NAME"),
        (("image", "import", "docker://", "--dry-run"), 2, "expected docker://HOST/NAME"),
        (("image", "build"), 2, "give one recipe, or --suite NAME"),
        (("image", "build", "x", "--suite", "sid"), 2, "give one recipe, or --suite NAME"),
        (("image", "build", "x", "--include", "y"), 2, "--include goes with --suite"),
        (("image", "build", "x", "--build-arg", "A"), 2, "expected NAME=VALUE"),
        (("image", "build", "none"), 1, "no recipe there"),
        (("image", "build", "--suite", "../x"), 2, "is no name of a suite"),
        (("image", "build", "--suite=sid", "--include=-x"), 2, "is no name of a package"),
    ],
)
def test_a_wrong_call_gets_one_clear_line(
    words: tuple[str, ...], code: int, says: str, flowos: Flowos
) -> None:
    done = flowos(*words, code=code)
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_dry_run_shows_the_commands_and_makes_nothing(
    flowos: Flowos, tmp_path: Path, library: Path
) -> None:
    source = written_root(tmp_path / "x")
    assert flowos("image", "import", source, "--dry-run").stdout.startswith("mksquashfs - ")
    fetched = flowos("image", "import", "docker://h/x:1", "--dry-run", "--json").stdout
    assert [argv[0] for argv in json.loads(fetched)] == ["skopeo", "mksquashfs"]
    words = ("--suite", "bookworm", "--include", "fio", "--dry-run")
    assert "mmdebstrap" in flowos("image", "build", *words).stdout
    (tmp_path / "a.def").write_text("Bootstrap: scratch")
    assert flowos("image", "build", tmp_path / "a.def", "--dry-run").stdout.startswith("apptainer ")
    (tmp_path / "s.sif").write_bytes(bytes(32) + b"SIF_MAGIC\0" + bytes(500))
    assert "unsquashfs" in flowos("image", "import", tmp_path / "s.sif", "--dry-run").stdout
    assert not library.exists()


def test_every_deed_shows_an_example(flowos: Flowos) -> None:
    for command in ("build", "import", "export", "ls", "rm", "verify", "inspect"):
        assert f"example: flowos image {command}" in flowos("image", command, "--help").stdout


def test_progress_is_a_few_lines_where_nobody_watches(flowos: Flowos, tmp_path: Path) -> None:
    source = written_root(tmp_path / "x", [("bin/noise", os.urandom(40 << 20))])
    lines = flowos("image", "import", source).stderr.splitlines()
    assert lines[:-1] == [f"reading {source}", "squashing", "taking the digest"]


def test_long_work_says_now_and_then_how_far_it_is_where_nobody_watches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown, seconds = StringIO(), iter((1.0, 2.0, 11.5, 12.0, 21.0, 22.0, 23.0))
    monkeypatch.setattr("flowos.engine.now", lambda: next(seconds))
    steps = _Steps(shown)
    for detail in ("", "5 MB", "9 MB", "9.5 MB"):
        steps.show(Progress(doing="making x", detail=detail))
    for detail in ("1 %", "2 %"):
        steps.show(Progress(doing="squashing", detail=detail))
    assert shown.getvalue().splitlines() == ["making x", "making x  9 MB", "squashing"]


def in_a_small_disk(tmp_path: Path, script: str) -> "subprocess.CompletedProcess[str]":
    """Run where `small` is a disk of 4 MB of its own; `locked` may only be read."""
    mounts = (
        f"mount -t tmpfs -o size=4m tmpfs {tmp_path}/small && "
        f"mount --bind {tmp_path}/locked {tmp_path}/locked && "
        f"mount -o remount,bind,ro {tmp_path}/locked && "
    )
    for name in ("small", "locked"):
        (tmp_path / name).mkdir()
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounts + script]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=tmp_path)


NO_NAMESPACES = (
    subprocess.run(["unshare", "--user", "--map-root-user", "true"], capture_output=True).returncode
    if shutil.which("unshare")
    else 1
)


@pytest.mark.skipif(bool(NO_NAMESPACES), reason="user namespaces are not allowed here")
@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ("XDG_DATA_HOME=small", "needs about .* in .*small/.*are free: make room"),
        ("XDG_DATA_HOME=locked", "Read-only file system|cannot be written"),
        ("TMPDIR=locked", "cannot work in .*locked/.*Read-only file system"),
    ],
)
def test_a_full_or_read_only_disk_is_told_in_one_line(
    variables: str, says: str, tmp_path: Path
) -> None:
    import re

    source = written_root(tmp_path / "x", [("bin/noise", os.urandom(20 << 20))])
    name, _, where = variables.partition("=")
    command = f"{sys.executable} -m flowos image import {source} --store {tmp_path}/s.db"
    script = f"{name}={tmp_path}/{where} {command}; echo $?; ls -A {tmp_path}/small"
    done = in_a_small_disk(tmp_path, script)
    assert done.stdout.splitlines()[0] == "1", done.stderr
    line = done.stderr.splitlines()[-1]
    assert re.search(says, line), line
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(bool(NO_NAMESPACES), reason="user namespaces are not allowed here")
def test_a_disk_that_fills_up_meanwhile_leaves_nothing(tmp_path: Path) -> None:
    """6 MB of noise pass the check beforehand, and do not fit."""
    source = written_root(tmp_path / "x", [("bin/noise", os.urandom(6 << 20))])
    command = f"{sys.executable} -m flowos image import {source} --store {tmp_path}/s.db"
    script = (
        f"XDG_DATA_HOME={tmp_path}/small {command}; echo $?; find {tmp_path}/small -size +0 -type f"
    )
    done = in_a_small_disk(tmp_path, script)
    assert done.stdout.splitlines() == ["1"], done.stderr
    assert "the disk is full" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("while_importing", ["flowos.model", "flowos.cli.image", "argparse"])
def test_an_interrupt_of_the_first_imports_is_one_line(while_importing: str) -> None:
    """Whoever presses Ctrl-C early does so while something is imported: this much, and here."""
    code = f"""
import os, signal, sys
class Presses:
    def find_spec(self, name, *_):
        if name == {while_importing!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.modules.pop({while_importing!r}, None)
sys.meta_path.insert(0, Presses())
from flowos.cli import main
sys.exit(main(["image", "ls"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "flowos image: interrupted\n")
