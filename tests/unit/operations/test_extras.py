"""Extras of the package: named in pyproject.toml, explained once, asked for by these names."""

import re
import tomllib
from pathlib import Path

import pytest

from flowos.operations import _extras
from flowos.operations._extras import WHAT, extras

HERE = Path(__file__).parents[3]
NAMED = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def test_each_extra_is_explained() -> None:
    assert WHAT.keys() == NAMED.keys()


def test_doctor_says_of_each_whether_it_is_there() -> None:
    found = {check.name: check for check in extras()}
    assert {*found} == {f"extra {name}" for name in NAMED}
    for name, check in found.items():
        plain = name.removeprefix("extra ")
        assert WHAT[plain] in check.says
        assert check.remedy == ("" if check.works else f"pip install 'flowos-hpc[{plain}]'")
    assert found["extra objects"].says.startswith("fsspec 2")  # which the tests need themselves


@pytest.mark.parametrize(
    ("version", "works", "says"),
    [
        ("9.5.0", False, "pillow 9.5.0, older than 10: without feeds of pictures"),
        ("10", True, "pillow 10: feeds of pictures"),
        ("10.0.1", True, "pillow 10.0.1: feeds of pictures"),
        ("", False, "no pillow: without feeds of pictures"),
    ],
)
def test_a_package_that_is_too_old_is_not_there(
    version: str, works: bool, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_extras, "_version", lambda _: version)
    (found,) = (check for check in extras() if check.name == "extra pictures")
    assert found.works == works
    assert found.says.startswith(says)


def test_what_is_not_for_this_kind_of_machine_is_not_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_extras, "machine", lambda: "aarch64")
    (found,) = (check for check in extras() if check.name == "extra mkl")
    assert (found.works, found.remedy) == (False, "")
    assert (
        found.says == "nothing for aarch64: without MKL among the BLAS libraries that are measured"
    )


def test_no_message_and_no_page_names_another() -> None:
    files = [*(HERE / "src").rglob("*.py"), *(HERE / "docs").rglob("*.md"), HERE / "README.md"]
    asked = {
        extra
        for file in files
        for names in re.findall(r"(?:flowos-hpc|install '\.)\[([\w,]+)\]", file.read_text())
        for extra in names.split(",")
    }
    assert asked - {"NAME"} <= NAMED.keys()
    assert {"parquet", "cloud", "metrics", "postgresql"} <= asked
