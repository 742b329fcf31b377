"""Every complaint in tests/golden/runtimes/heard.txt has a meaning and a remedy."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from flowos.drivers import explain

HEARD = Path(__file__).parents[2] / "golden/runtimes/heard.txt"


def heard() -> Iterator[tuple[str, str, str, str]]:
    """Runtime, code, what must be named, words."""
    text = "".join(line for line in HEARD.read_text().splitlines(True) if line[0] not in "#\n")
    for block in text.split("== ")[1:]:
        head, _, said = block.partition("\n")
        runtime, code, *named = head.split(" ", 2)
        yield runtime, code, "".join(named), said


@pytest.mark.parametrize(("runtime", "code", "named", "said"), tuple(heard()))
def test_what_was_heard_has_a_meaning_and_a_remedy(
    runtime: str, code: str, named: str, said: str
) -> None:
    reason = explain(runtime, f"exit 1: {said}")
    assert reason.code == code
    assert reason.remedy
    for told in (reason.text, reason.remedy):
        assert told.isprintable()
        assert "{" not in told
    assert named in reason.text


def test_the_runtime_that_needs_a_profile_is_named() -> None:
    assert "for bwrap" in explain("bwrap", "bwrap: setting up uid map: Permission denied").remedy


def test_unknown_words_stay_as_they_are_the_last_ones_in_one_line() -> None:
    reason = explain("ch-run", "one\n---\n\ntwo\tand \x1b[31mmore\x1b[0m\nthree\nfour\n")
    assert (reason.code, reason.text, reason.remedy) == (
        "unknown",
        "two and more / three / four",
        "",
    )


def test_braces_in_its_words_are_no_pattern() -> None:
    assert explain("podman", "{runtime} {0}").text == "{runtime} {0}"
    assert "{x}" in explain("bwrap", "bwrap: Can't mkdir /{x}: Read-only file system").text


def test_a_runtime_that_said_nothing_is_told_so() -> None:
    assert explain("podman", "\n--\n").text == "podman said nothing"


def test_what_is_told_has_a_bound() -> None:
    assert len(explain("podman", "x" * 5000).text) == 300
    assert (
        len(explain("bwrap", f"bwrap: Can't mkdir /{'x' * 5000}: Read-only file system").text) < 400
    )
