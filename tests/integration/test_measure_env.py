"""`flowos measure --env A --env B`: bare against itself, by the real command and programs."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from flowos.engine import here
from flowos.model import Launch, MeasureError
from flowos.operations.measure._bundle import bundle, libraries_in, loader_of
from flowos.operations.measure._environments import label_of

Flowos = Callable[..., subprocess.CompletedProcess[str]]


def test_bare_beside_bare_is_measured_in_turns_and_can_be_compared(
    flowos: Flowos, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    twice = ("--env", "bare", "--env", "bare", "--scratch", str(scratch))
    found = flowos("measure", *twice, "--only", "startup", "--minutes", "0.15", "--json")
    report = json.loads(found.stdout)["report"]
    assert [e["label"] for e in report["run"]["environments"]] == ["bare", "bare#2"]
    assert {t["name"] for t in report["run"]["environments"][0]["tried"]} > {"io_uring", "pinning"}
    first = [dict(s["case"]["levels"])["env"] for s in report["samples"] if s["round"] == 1]
    assert first == first[::-1]  # which comes first is drawn
    assert sorted(first) == ["bare", "bare", "bare#2", "bare#2"]
    assert all(len(s["values"]) == 10 for s in report["samples"])
    told = json.loads(flowos("compare", "last", "--axis", "env", "--json").stdout)
    (verdict,) = told["verdicts"]
    assert (verdict["base"], verdict["other"]) == ("bare", "bare#2")
    assert list(scratch.iterdir()) == []


def test_a_dry_run_shows_the_whole_command_line_in_each_environment(flowos: Flowos) -> None:
    done = flowos("measure", "--env", "bare", "--env", "bare", "--only", "stream", "--dry-run")
    assert "stream env=bare#2 stores=nt threads" in done.stdout
    for words in ("flowos-init", "ld.so --library-path", "OMP_NUM_THREADS", "/bin/sh -c"):
        assert words in done.stdout
    assert "no run is kept yet" in flowos("list").stdout


def test_each_its_own_binary_is_run_without_a_bundle(flowos: Flowos) -> None:
    twice = ("--env", "bare", "--env", "bare", "--binary", "own")
    planned = json.loads(flowos("measure", *twice, "--quick", "--dry-run", "--json").stdout)
    said = " ".join(" ".join(step.get("commands", ())) for step in planned)
    assert "stream" in said
    assert "ld.so" not in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--env", "bare"), "name what is to be compared with it"),
        (("--env", "bare", "--env", "no/such.sqfs"), "no such image"),
        (("--env", "bare", "--env", "bare@ch-run"), "leave out @ch-run"),
        (("--env", "bare", "--env", "bare", "--only", "clock"), "'clock' is not compared"),
        (("--env", "bare", "--env", "bare", "--scratch", "/no/such"), "--scratch"),
    ],
)
@pytest.mark.usefixtures("unseen_node")
def test_a_wrong_call_gets_one_clear_line_before_anything_is_measured(
    flowos: Flowos, words: tuple[str, ...], says: str
) -> None:
    for mode in ((), ("--dry-run",)):
        done = flowos("measure", *words, *mode, code=2)
        assert says in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    assert json.loads(flowos("list", "--json").stdout) == []


def test_environments_that_are_named_alike_get_labels_of_their_own() -> None:
    digest = "sha256:" + "ab" * 32
    assert label_of("bare", "", "", []) == "bare"
    assert label_of("bare", "", "", ["bare", "bare#2"]) == "bare#3"
    assert label_of("i.sqfs", "ch-run", digest, ["i.sqfs@bwrap"]) == "i.sqfs@ch-run"
    taken = ["i.sqfs@ch-run"]
    assert label_of("i.sqfs", "ch-run", digest, taken) == "i.sqfs@ch-run#abababab"
    taken.append("i.sqfs@ch-run#abababab")
    assert label_of("i.sqfs", "ch-run", digest, taken) == "i.sqfs@ch-run#abababab#2"


def test_a_bundled_program_takes_its_libraries_from_its_bundle_only(tmp_path: Path) -> None:
    made = bundle(here(), Path(sys.executable).resolve(), tmp_path / "python")
    names = {file.name for file in made.folder.iterdir()}
    assert {"ld.so", "libc.so.6"} <= names
    look = "print(*sorted({w.split()[-1] for w in open('/proc/self/maps') if '.so' in w}))"
    variables = (("PYTHONHOME", sys.base_prefix),)
    outcome = here().run(Launch(argv=(*made.words, "-S", "-c", look), variables=variables))
    used = outcome.stdout.decode().split()
    assert [file for file in used if "libc.so" in file] == [str(made.folder / "libc.so.6")]
    assert str(made.folder / "ld.so") in used


def test_what_a_program_opens_later_lies_in_its_bundle_too(tmp_path: Path) -> None:
    source, library = tmp_path / "x.c", tmp_path / "libx.so"
    source.write_text("int x(void) { return 42; }")
    subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", library, "-lm"], check=True)
    made = bundle(here(), Path("/bin/true").resolve(), tmp_path / "bundle", [library])
    assert made.holds(library).read_bytes() == library.read_bytes()


def test_a_static_program_is_bundled_alone(tmp_path: Path) -> None:
    source, program = tmp_path / "x.c", tmp_path / "x"
    source.write_text("int main(void) { return 7; }")
    subprocess.run(["gcc", "-static", source, "-o", program], check=True)
    assert loader_of(program) is None
    made = bundle(here(), program, tmp_path / "bundle")
    assert made.words == (str(made.folder / "x"),)
    assert here().run(Launch(argv=made.words)).end.code == 7  # type: ignore[union-attr]


def test_what_is_no_program_or_lacks_a_library_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    with pytest.raises(MeasureError, match="no 64-bit ELF program"):
        bundle(here(), script, tmp_path / "a")
    source, library, program = (tmp_path / name for name in ("x.c", "libx.so", "x"))
    source.write_text("int x(void) { return 0; }\nint main(void) { return x(); }")
    subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", library], check=True)
    subprocess.run(
        ["gcc", source, "-o", program, f"-L{tmp_path}", "-Wl,--no-as-needed", "-lx"], check=True
    )
    library.unlink()
    with pytest.raises(MeasureError, match=r"libx\.so"):
        bundle(here(), program, tmp_path / "b")


def test_a_listing_of_libraries_is_read() -> None:
    listing = (
        "\tlinux-vdso.so.1 (0x00007ffe)\n"
        "\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f)\n"
        "\tlibgone.so.1 => not found\n"
        "\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n"
    )
    assert libraries_in(listing) == {
        "libm.so.6": "/lib/x86_64-linux-gnu/libm.so.6",
        "libgone.so.1": "not found",
    }
