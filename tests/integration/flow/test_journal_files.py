"""A journal and files: by name and content, as tasks took and gave them."""

from pathlib import Path

import flowos as fo
from tests.integration.flow.test_flow_journal import lines


def test_files_count_by_name_and_content(tmp_path: Path) -> None:
    log = tmp_path / "log"

    @fo.task
    def words(text: fo.File) -> fo.int64:
        with log.open("a") as file:
            file.write("ran\n")
        return len(text.read_text().split())

    one, other = tmp_path / "a/text", tmp_path / "b/text"
    for file in (one, other):
        file.parent.mkdir()
        file.write_text("to be")
    with fo.slice(words(fo.flow_input("t", fo.File)), journal=tmp_path / "journal") as s:
        assert (s.run(one), s.run(str(one)), s.run(other)) == ([2], [2], [2])
        assert len(lines(log)) == 1
        one.write_text("or not to be")
        assert s.run(one) == [4]
        one.rename(tmp_path / "a/other")
        assert s.run(tmp_path / "a/other") == [4]
        assert len(lines(log)) == 3


def test_files_within_values_count_by_name_and_content_too(tmp_path: Path) -> None:
    log, out = tmp_path / "log", tmp_path / "out"
    out.mkdir()

    @fo.task
    def twice(texts: dict[str, Path | None]) -> list[Path]:
        with log.open("a") as file:
            file.write("ran\n")
        made = []
        for name, text in texts.items():
            made.append(out / name)
            made[-1].write_text(text.read_text() * 2 if text else "")
        return made

    one, other = tmp_path / "a/text", tmp_path / "b/text"
    for file in (one, other):
        file.parent.mkdir()
        file.write_text("to be")
    flow = twice(fo.flow_input("t", dict[str, Path | None]))
    with fo.slice(flow, journal=tmp_path / "journal") as s:
        for given in (one, other):
            assert s.run({"x": given, "y": None}) == [[out / "x", out / "y"]]
        assert len(lines(log)) == 1
        one.write_text("or not")
        assert (s.run({"x": one, "y": None}), len(lines(log))) == ([[out / "x", out / "y"]], 2)
        (out / "y").unlink()
        assert (s.run({"x": one, "y": None}), len(lines(log))) == ([[out / "x", out / "y"]], 3)
        assert (out / "x").read_text() == "or notor not"


def test_a_commands_files_come_back_when_its_folder_is_gone(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = f'echo ran >> {log}; sort "$0" > "$1"; echo sorted; chmod 700 "$1"'
    sort = fo.command(
        ["/bin/sh", "-c", script, fo.In("text"), fo.Out("lines")], stdout="said", exit_code="code"
    )
    given = tmp_path / "given"
    given.write_text("b\na\n")
    flow = fo.flow_output(*sort(fo.flow_input("text", fo.File)))
    for _ in range(2):
        with fo.slice(flow, journal=tmp_path / "journal") as s:
            given_back, said, code = s.run(given)
            made = Path(str(given_back))
            assert (made.name, made.read_text(), said, code) == ("lines", "a\nb\n", "sorted\n", 0)
            assert made.stat().st_mode & 0o777 == 0o700
    assert not made.exists()
    assert lines(log) == ["ran"]
    for value in (tmp_path / "journal/values").iterdir():
        value.write_text("damaged")
    with fo.slice(flow, journal=tmp_path / "journal") as s:
        given_back, *_ = s.run(given)
        assert Path(str(given_back)).read_text() == "a\nb\n"
    assert lines(log) == ["ran", "ran"]


def test_a_command_runs_again_when_its_program_or_a_file_it_names_changed(tmp_path: Path) -> None:
    tool, data = tmp_path / "tool", tmp_path / "data"

    def run() -> list[object]:
        flow = fo.flow_output(fo.command([tool, data], variables={"A": "1"})())
        with fo.slice(flow, journal=tmp_path / "journal") as s:
            return [*s.run(), sum("result was taken from" in note for note in s.notes)]

    tool.write_text('#!/bin/sh\ncat "$1"\n')
    tool.chmod(0o755)
    data.write_text("one")
    assert (run(), run()) == (["one", 0], ["one", 1])
    data.write_text("two")
    assert (run(), run()) == (["two", 0], ["two", 1])
    tool.write_text('#!/bin/sh\ntac "$1"\n')
    assert (run(), run()) == (["two", 0], ["two", 1])


def test_a_path_within_a_value_may_be_of_what_is_not_there_yet(tmp_path: Path) -> None:
    log, out = tmp_path / "log", tmp_path / "out"

    @fo.task
    def plan(places: list[Path]) -> list[Path]:
        with log.open("a") as file:
            file.write("ran\n")
        return [place / "later" for place in places]

    with fo.slice(plan(fo.flow_input("p", list[Path])), journal=tmp_path / "journal") as s:
        assert s.run([out]) == s.run([out]) == [[out / "later"]]
        assert len(lines(log)) == 1
        assert s.run([tmp_path / "other"]) == [[tmp_path / "other/later"]]
        out.mkdir()
        (out / "later").write_text("now it is")
        assert s.run([out]) == [[out / "later"]]
        assert len(lines(log)) == 3


def test_a_file_of_a_python_task_has_to_be_as_it_was(tmp_path: Path) -> None:
    log, out = tmp_path / "log", tmp_path / "out"

    @fo.task
    def write(text: fo.str_) -> fo.File:
        with log.open("a") as file:
            file.write("ran\n")
        out.write_text(text)
        return out

    with fo.slice(write(fo.flow_input("t", fo.str_)), journal=tmp_path / "journal") as s:
        assert (s.run("a"), s.run("a")) == ([out], [out])
        assert len(lines(log)) == 1
        assert (s.run("b"), s.run("a"), out.read_text()) == ([out], [out], "a")
        assert len(lines(log)) == 3
        out.unlink()
        assert (s.run("a"), out.read_text()) == ([out], "a")
