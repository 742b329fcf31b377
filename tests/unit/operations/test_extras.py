"""Extras of the package: named in pyproject.toml, explained once, asked for by these names."""

import re
import tomllib
from pathlib import Path

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
