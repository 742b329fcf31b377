"""The reference of the site follows from the code, and leaves nothing out."""

import re
import runpy
import shlex
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from itertools import groupby
from pathlib import Path

import pytest
import yaml

import flowos
from flowos import model
from flowos.cli import parser
from flowos.cli._commands import COMMANDS
from tests.tutorials import blocks, commands

DOCS = Path(__file__).parents[2] / "docs"
PACKAGE = Path(flowos.__file__).parent
CHIEF = """
Ask Call Case Command Environment Facts Flow Image Launch Measurement Needs Outcome Pool Port
PortType Process Run Sample Task Trust Verdict
"""
"""Nouns of the model that people meet."""


@pytest.fixture(autouse=True)
def modules_of_docs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))


def test_there_is_a_page_of_each_command_and_a_place_for_each_name(tmp_path: Path) -> None:
    runpy.run_path(str(DOCS / "_generated.py"))["write"](tmp_path / "pages")
    pages = {path.name: path.read_text() for path in (tmp_path / "pages").iterdir()}
    assert sorted(pages) == sorted(
        [
            *(f"flowos-{name}.md" for name in COMMANDS),
            *("exit-codes.md", "python.md", "report-json.md", "store.md"),
        ]
    )
    assert "`--dry-run`" in pages["flowos-measure.md"]
    assert "# flowos feed warm" in pages["flowos-feed.md"]
    for name in flowos.__all__:
        assert f".{name}\n" in pages["python.md"]


def test_examples_in_docstrings_stay_as_they_are() -> None:
    converted = runpy.run_path(str(DOCS / "_docstrings.py"))["converted"]
    example = [">>> any_(*`x`)", "a: 1"]
    assert converted(["`x`:", "", *example, ""]) == ["``x``:", "", *example, ""]


def test_docstrings_become_lists_and_code() -> None:
    converted = runpy.run_path(str(DOCS / "_docstrings.py"))["converted"]
    given = ["One line of `any_` and any_.", "", "a, b: first", "    and more.", "c: second", ""]
    assert converted(given) == [
        r"One line of ``any_`` and any\_.",
        "",
        "- ``a, b``: first",
        "  and more.",
        "- ``c``: second",
        "",
    ]
    assert converted(["a: not a list, as", "the next line is not indented."])[0].startswith("a:")


def test_each_field_that_is_kept_has_a_meaning_and_no_meaning_is_left_over() -> None:
    found = runpy.run_path(str(DOCS / "_schemas.py"))
    known = found["FIELDS"]
    nouns = {**found["json_schema"]()["$defs"]}
    for noun in found["BODIES"].values():
        nouns |= model.schema_of(noun)["$defs"]
    said = {
        (name, field): found["meaning_of"](name, field, each, " ".join(noun["description"].split()))
        for name, noun in nouns.items()
        for field, each in noun["properties"].items()
    }
    assert all(said.values())
    used = {k for name, field in said for k in (f"{name}.{field}", field) if k in known}
    assert used == {*known}
    assert said["Verdict", "low"] == "the ratio's 95 % interval"
    assert found["unit_of"]("memory_bytes_per_second") == "byte/s"


def glossary() -> list[str]:
    terms = re.findall(
        r"^([A-Z].*)\n: ", (DOCS / "reference/glossary.md").read_text(), re.MULTILINE
    )
    return [re.sub(r" \(.*\)", "", each) for term in terms for each in term.split(", ")]


def words(name: str) -> str:
    """PortType, port_type and _port_types -> port type."""
    return " ".join(re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name)).lower()


def names_of_the_code() -> Iterator[str]:
    """Classes of the model and their fields, public names, folders and files."""
    yield from flowos.__all__
    for name, value in ((name, getattr(model, name)) for name in dir(model)):
        yield name
        if isinstance(value, type) and is_dataclass(value):
            yield from (field.name for field in fields(value))
    for path in PACKAGE.rglob("*"):
        yield path.stem


def test_each_term_of_the_glossary_is_a_name_of_the_code_and_has_one_place() -> None:
    terms = glossary()
    assert len({*map(str.lower, terms)}) == len(terms)
    code = [f" {words(name)} " for name in {*names_of_the_code()}]
    for term in terms:
        assert any(re.search(rf" {words(term)}s? ", name) for name in code), term


def test_what_people_meet_is_in_the_glossary() -> None:
    terms = {words(term) for term in glossary()}
    chief = CHIEF.split()
    for name in chief:
        assert isinstance(getattr(model, name), type), name
    face = {name: getattr(flowos, name) for name in flowos.__all__}
    classes = {n for n, v in face.items() if isinstance(v, type) and not issubclass(v, Exception)}
    assert not {words(name) for name in (*chief, *classes)} - terms


def calls_of_flowos(page: str) -> Iterator[list[str]]:
    """The arguments of each, in blocks for a shell, also in those that no test runs."""
    lines: list[str] = []
    for block in blocks(page):
        if block.language == "console":
            lines += [command.line for command in commands(block.text)]
        elif block.language == "sh":
            lines += block.text.replace("\\\n", "").splitlines()
    for line in lines:
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        for _, call in groupby(words, lambda word: not word.strip(";|&<>()")):
            name, *arguments = [word for word in call if word != "do"] or [""]
            if name == "flowos":
                yield arguments


def test_each_call_of_flowos_in_a_page_is_one_that_it_takes() -> None:
    flowos = parser(all_options=True)

    def takes(call: list[str]) -> bool:
        try:
            return bool(flowos.parse_args(call))
        except SystemExit as end:  # 0: of --help
            return not end.code

    calls = [call for page in DOCS.rglob("*.md") for call in calls_of_flowos(page.read_text())]
    assert len(calls) > 100
    assert not [call for call in calls if not takes(call)]


def test_each_cited_paper_has_its_authors_or_says_why_not() -> None:
    cited = yaml.safe_load((DOCS.parent / "CITATION.cff").read_text())["references"]
    assert len(cited) == 5
    for paper in cited:
        if any("family-names" not in author for author in paper["authors"]):
            assert "the title page is missing" in paper["notes"], paper["title"]
