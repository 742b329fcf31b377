"""The READMEs say the same, and what they link to is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READMES = ("README.md", "README.ja.md")


def test_both_have_the_same_code_and_links() -> None:
    one, other = (_parts((ROOT / name).read_text()) for name in READMES)
    assert one == other


@pytest.mark.parametrize("name", [*READMES, "CONTRIBUTING.md", "ARCHITECTURE.md"])
def test_each_link_leads_to_a_file(name: str) -> None:
    for link in _links((ROOT / name).read_text()):
        assert (ROOT / link).exists(), link


def _parts(text: str) -> tuple[list[str], list[str]]:
    return re.findall(r"^```\w+\n.*?^```$", text, re.M | re.S), _links(text)


def _links(text: str) -> list[str]:
    return [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
