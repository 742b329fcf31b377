"""Publishing an output: whole or not at all, not again where the same is there."""

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowos as fo
from flowos.model import StoreError
from flowos.operations import _kept_files, flow_file

FLOWOS = str(Path(sys.executable).with_name("flowos"))
FLOW = """
import numpy as np
import flowos as fo

@fo.task
def table(n: fo.int64) -> fo.array(fo.float64, (None,)):
    return np.arange(n, dtype=float)

n = fo.flow_input("n", fo.int64)
listing, said = fo.command(
    ["/bin/sh", "-c", 'echo $0 > "$1"; echo done', fo.In("n"), fo.Out("listing")],
    inputs={"n": fo.int64}, stdout="said",
)(n)
flow = fo.flow_output(table(n), listing, said)
"""


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_values_are_written_by_the_name_of_the_file(tmp_path: Path) -> None:
    array = np.arange(6.0).reshape(2, 3)
    assert fo.publish(array, tmp_path / "new/deeper/a.npy")
    assert np.array_equal(np.load(tmp_path / "new/deeper/a.npy"), array)
    assert fo.publish(3, tmp_path / "number.npy")
    assert np.load(tmp_path / "number.npy") == 3
    assert fo.publish("grüße", tmp_path / "text.txt")
    assert (tmp_path / "text.txt").read_text() == "grüße"
    assert fo.publish(b"\0\xff", tmp_path / "bytes")
    assert (tmp_path / "bytes").read_bytes() == b"\0\xff"
    value = {"a": [1, 2.5, None, True], "b": array, "c": np.int64(3), "d": float("nan")}
    assert fo.publish(value, tmp_path / "value.json")
    found = json.loads((tmp_path / "value.json").read_text())
    assert found == {"a": [1, 2.5, None, True], "b": array.tolist(), "c": 3, "d": None}
    assert left(tmp_path) == ["bytes", "new", "number.npy", "text.txt", "value.json"]


def test_what_is_the_same_is_not_written_again(tmp_path: Path) -> None:
    place = tmp_path / "a.npy"
    assert fo.publish(np.zeros(3), place)
    before = place.stat()
    assert not fo.publish(np.zeros(3), place)
    assert place.stat() == before
    assert fo.publish(np.ones(3), place)
    assert np.array_equal(np.load(place), np.ones(3))


def test_files_and_folders_are_copied_with_their_permissions(tmp_path: Path) -> None:
    file, folder = tmp_path / "run.sh", tmp_path / "results"
    file.write_text("exit 0")
    file.chmod(0o750)
    folder.mkdir()
    (folder / "one").write_text("1")
    out = tmp_path / "out"
    for given, name in ((file, "run"), (folder, "all")):
        assert fo.publish(given, out / name)
        assert not fo.publish(given, out / name)
        assert not fo.publish(given, given)
        assert (out / name).stat().st_mode == given.stat().st_mode
    (folder / "one").rename(folder / "two")
    assert fo.publish(folder, out / "all")
    assert left(out / "all") == ["two"]
    assert left(out) == ["all", "run"]


def test_a_link_stays_and_leads_to_the_new_content(tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to("first.txt")
    assert fo.publish("a", tmp_path / "latest")
    assert (tmp_path / "latest").is_symlink()
    assert (tmp_path / "first.txt").read_text() == "a"


@pytest.mark.parametrize(
    ("value", "name", "complaint"),
    [
        ([1], "a.txt", r"\[1\] \(list\) cannot be written to a.txt: use a name that ends in .json"),
        (np.zeros(2), "a.txt", "an array of float64, shape .* ends in .npy or .json"),
        (object(), "a.json", r"a.json: <object object .* has no form in JSON"),
        ({1: 2}, "a.json", "has no form in JSON"),
        (np.longdouble(0.1), "a.json", "a.json: .* has no form in JSON"),
        (b"a", "a.json", "has no form in JSON"),
        (np.array([1, "a"], dtype=object), "a.npy", "Object arrays cannot be saved"),
        ("\udc80", "a.txt", "a.txt: a text that is not Unicode"),
        ({"a": "\udc80"}, "a.json", "a.json: a text that is not Unicode"),
        ("text", "a\0", "expected a path, given "),
        (datetime(2026, 1, 2), "a.txt", "no file has a form for it: make it a text, or bytes"),
        (1j, "a.txt", "use a name that ends in .npy$"),
        (nested(5000), "a.json", "a.json: it is nested too deeply, or contains itself"),
        (
            np.ma.array([1.0, 2.0, -9999.0], mask=[False, False, True]),
            "a.npy",
            r"1 of 3 values is masked: fill it, as with x.filled\(nan\)",
        ),
    ],
)
def test_a_value_that_does_not_fit_the_name_is_refused(
    tmp_path: Path, value: object, name: str, complaint: str
) -> None:
    with pytest.raises(fo.ValueRefused, match=f"^publish: .*{complaint}"):
        fo.publish(value, tmp_path / name)
    assert left(tmp_path) == []


def test_a_mask_that_hides_nothing_and_long_integers_are_written(tmp_path: Path) -> None:
    fo.publish(np.ma.array([1.0, 2.0], mask=[False, False]), tmp_path / "a.npy")
    assert np.load(tmp_path / "a.npy").tolist() == [1.0, 2.0]
    fo.publish({"a": [10**5000, "b"], "c": -(10**5000)}, tmp_path / "a.json")
    text = (tmp_path / "a.json").read_text()
    assert text == '{\n "a": [\n  1%s,\n  "b"\n ],\n "c": -1%s\n}\n' % (("0" * 5000,) * 2)


def test_a_folder_is_not_copied_into_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("1")
    monkeypatch.chdir(tmp_path)
    for place in ("sub/x", "x"):
        with pytest.raises(fo.ValueRefused, match=r"which would be copied into itself$"):
            fo.publish(Path(), place)
    assert left(tmp_path) == ["file"]
    assert not fo.publish(Path(), tmp_path)


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    for given in (tmp_path, pipe):
        with pytest.raises(fo.ValueRefused, match=rf"^publish: .* {pipe} is neither$"):
            fo.publish(given, f"{tmp_path}.out")


def test_a_name_is_as_long_as_a_name_may_be(tmp_path: Path) -> None:
    for name in ("x" * 255, "ü" * 127):
        for text in ("new", "newer"):
            assert fo.publish(text, tmp_path / name)
            assert (tmp_path / name).read_text() == text
    with pytest.raises(StoreError, match="File name too long"):
        fo.publish("t", tmp_path / ("x" * 300))
    assert left(tmp_path) == ["x" * 255, "ü" * 127]


@pytest.mark.parametrize("path", ["", 3, None, b"a", "a\0"])
def test_what_names_no_file_is_refused(path: Any) -> None:
    with pytest.raises(fo.ValueRefused, match="publish: expected a path, given "):
        fo.publish("text", path)


def test_a_folder_stays_where_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    rename = Path.rename

    def fails(self: Path, target: Path) -> Path:
        if (self / "file").read_text() == "new":
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(StoreError, match="Input/output error"):
        fo.publish(tmp_path / "new", tmp_path / "old")
    assert (tmp_path / "old/file").read_text() == "old"
    assert left(tmp_path) == ["new", "old"]


def test_what_cannot_be_written_is_one_clear_line_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    for name, why in (
        ("file/a.txt", "Not a directory|File exists"),
        ("folder", "a folder is there, and the output is a file"),
        ("fifo", "is no regular file"),
    ):
        with pytest.raises(
            StoreError, match=f"publish: {tmp_path}/{name} cannot be written: .*{why}"
        ):
            fo.publish("new", tmp_path / name)
    with pytest.raises(fo.ValueRefused, match=r"nothing is at .*/no-such-file"):
        fo.publish(tmp_path / "no-such-file", tmp_path / "a")
    assert left(tmp_path) == ["fifo", "file", "folder"]
    assert (tmp_path / "file").read_text() == "old"


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    place = tmp_path / "a.txt"
    place.write_text("old")
    program = (
        "import resource, signal, sys, flowos as fo\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "try:\n"
        "    fo.publish('x' * 1000, sys.argv[1])\n"
        "except fo.FlowosError as error:\n"
        "    print(error)\n"
    )
    words = [sys.executable, "-c", program, str(place)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.stderr) == (
        f"publish: {place} cannot be written: File too large\n",
        "",
    )
    assert (left(tmp_path), place.read_text()) == (["a.txt"], "old")


COUNTS = """
from pathlib import Path
import flowos as fo

@fo.task
def count(n: fo.int64) -> fo.int64:
    Path("ran").touch()
    return n

@fo.task
def any_count(n: fo.int64) -> fo.any_:
    return n

@fo.task
def parts(n: fo.int64) -> list[int]:
    return [n]

@fo.task
def phase(n: fo.int64) -> fo.complex128:
    return n * 1j

@fo.task
def raw(n: fo.int64) -> fo.bytes_:
    return bytes(n)

n = fo.flow_input("n", fo.int64)
flow = fo.flow_output(count(n), any_count(n), parts(n), phase(n), raw(n))
"""


@pytest.mark.parametrize(
    ("place", "complaint"),
    [
        ("count=x.txt", "it is int64: use a name that ends in .npy or .json"),
        ("parts=x.npy", "it is list[int64]: use a name that ends in .json"),
        ("phase=x.json", "it is complex128: use a name that ends in .npy"),
        ("raw=x.json", "bytes have no form in JSON: use another name"),
        ("count=/proc/no/x.json", "No such file or directory"),
        ("count=flow.py/x.json", "Not a directory"),
        ("count=d.json", "a folder is there, and the output is a file"),
        ("any_count=fifo", "it is no regular file"),
        ("count=" + "x" * 300 + ".json", "File name too long"),
    ],
)
def test_a_place_that_cannot_be_is_refused_before_the_run(
    tmp_path: Path, place: str, complaint: str
) -> None:
    (tmp_path / "flow.py").write_text(COUNTS)
    (tmp_path / "d.json").mkdir()
    os.mkfifo(tmp_path / "fifo")
    done = flowos(tmp_path, "n=3", "--out", place)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"flowos run: --out {place}: {complaint}\n"
    assert {"ran", "x.txt"}.isdisjoint(left(tmp_path))


@pytest.mark.parametrize("as_json", [True, False])
def test_outputs_are_printed_where_one_cannot_be_published(tmp_path: Path, as_json: bool) -> None:
    (tmp_path / "flow.py").write_text(COUNTS)
    places = ("--out", "any_count=x.txt", "--out", "count=new/x.json")
    done = flowos(tmp_path, "n=3", *places, *["--json"] * as_json)
    assert done.returncode == 1
    assert done.stderr.startswith("flowos run: publish: 3 (int) cannot be written to x.txt: ")
    assert len(done.stderr.splitlines()) == 1
    if as_json:
        found = json.loads(done.stdout)
        assert (found["any_count"], found["count"]) == (3, "new/x.json")
    else:
        assert "any_count = 3\n" in done.stdout
        assert "count = new/x.json\n" in done.stdout
    assert (tmp_path / "new/x.json").read_text() == "3\n"


FILES = """
from pathlib import Path
import flowos as fo

def made(name, does):
    command = ["/bin/sh", "-c", does, fo.Out(name), str(Path(__file__).parent)]
    return fo.command(command, inputs={}, name=name)()

flow = fo.flow_output(
    made("one", 'echo 1 > "$0"; mkdir "$1/a"'),
    made("two", 'mkdir "$0"; echo 2 > "$0/file"; ln -s file "$0/link"; echo > "$1/b"'),
)
"""


def test_files_that_cannot_be_published_are_kept_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "flow.py").write_text(FILES)
    (tmp_path / "kept").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "kept"))
    done = flowos(tmp_path, "--out", "one=a", "--out", "two=b", "--json")
    found = {name: Path(path) for name, path in json.loads(done.stdout).items()}
    assert (done.returncode, list(found)) == (1, ["one", "two"])
    assert found["one"].read_text() == "1\n"
    assert (found["two"] / "link").readlink() == Path("file")
    assert (found["two"] / "link").read_text() == "2\n"
    for line, path in zip(done.stderr.splitlines(), found.values(), strict=True):
        assert line.startswith("flowos run: publish: ")
        assert line.endswith(f"; it is kept as {path}")


def test_files_that_have_no_place_are_kept_too(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FILES)
    done = flowos(tmp_path, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = {name: Path(path) for name, path in json.loads(done.stdout).items()}
    assert found["one"].read_text() == "1\n"
    assert (found["two"] / "link").read_text() == "2\n"
    for path in found.values():
        shutil.rmtree(path.parent)


def test_a_file_for_which_there_is_no_room_is_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "made").write_text("1")
    outputs: dict[str, object] = {"one": tmp_path / "made", "two": 2}

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(_kept_files, "_linked", full)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "at").mkdir()
    (why,) = flow_file._publish(outputs, dict.fromkeys(outputs, fo.any_), {"one": tmp_path / "at"})
    assert why.endswith("; nor can it be kept in a temporary folder: No space left on device")
    assert outputs == {"two": 2}
    assert left(tmp_path) == ["at", "made"]


def flowos(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [FLOWOS, "run", "flow.py", *words], cwd=folder, capture_output=True, text=True, timeout=60
    )


def test_flowos_run_publishes_outputs_and_keeps_a_journal(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FLOW)
    (names,) = [
        line.rpartition(": ")[2]
        for line in flowos(tmp_path, "n=3", "--out", "none=x").stderr.splitlines()
        if "--out none=x: no output 'none'; outputs: " in line
    ]
    table, listing, said = names.split(", ")
    assert table == "table"
    places = ("--out", "table=out/t.npy", "--out", f"{listing}=out/l", "--journal", "kept")
    done = flowos(tmp_path, "n=3", *places)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"table = out/t.npy\n{listing} = out/l\n{said} = done\n"
    assert (tmp_path / "out/l").read_text() == "3\n"
    assert np.array_equal(np.load(tmp_path / "out/t.npy"), np.arange(3.0))
    before = (tmp_path / "out/l").stat()
    done = flowos(tmp_path, "n=3", *places)
    assert done.stderr == f"flowos run: 2 results were taken from journal {tmp_path}/kept\n"
    assert (tmp_path / "out/l").stat() == before
    (tmp_path / "kept/journal").write_text("other")
    done = flowos(tmp_path, "n=3", *places)
    assert done.returncode != 0
    assert "journal" in done.stderr
    assert len(done.stderr.splitlines()) == 1
