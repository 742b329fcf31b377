"""Comparisons: summed up, worst first, within 100 columns, and marked where rounds were not."""

import math
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from flowos.model import Entered, Verdict
from flowos.report import Report, html, json, markdown, read_json, text, verdicts_text
from flowos.report._comparison_table import grouped, known, rounds_of
from flowos.report.page._comparison_table import verdict_table

from .conftest import OPEN_ENDED, VERDICT

FASTER = replace(VERDICT, answer="faster", ratio=1.2, low=1.1, high=1.3)
EQUAL = replace(VERDICT, answer="equal", ratio=1.0, low=0.99, high=1.01)
OPEN = replace(
    VERDICT,
    answer="inconclusive",
    ratio=0.9,
    low=0.6,
    high=1.21,
    rounds=4,
    needed=10,
    why="the interval is wide; for more rounds: `flowos measure --only stream --minutes 3`",
)
DISTURBED = replace(VERDICT, disturbed=8, ratio=0.9)


GOLDEN = Path(__file__).parents[2] / "golden/report"


def golden_verdicts() -> Iterator[Verdict]:
    """By case; of one case; of several axes with long names; with nothing to note."""
    for way, env, v in (
        ("exec", "i@ch-run", VERDICT),
        ("shell", "i@ch-run", EQUAL),
        ("exec", "i@podman", replace(VERDICT, ratio=0.744)),
        ("shell", "i@podman", FASTER),
    ):
        of_env = replace(v, axis="env", base="bare", other=env)
        yield replace(of_env, rest=(("way", way), ("pages", "huge")))
    for number, v in enumerate((OPEN, replace(DISTURBED, disturbed=1), OPEN_ENDED)):
        yield replace(v, probe="fio", metric="fio", other=f"plain-{number}")
    for axis in ("compiler", "flags"):
        yield replace(
            replace(VERDICT, probe="gemm", axis=axis),
            base="a-base-of-a-long-name",
            other="b" * 40,
            rest=tuple((f"axis{n}", f"level-{n}-of-{axis}") for n in range(6)),
        )
    yield replace(OPEN, probe="startup", metric="startup")
    yield replace(FASTER, probe="mpi", metric="latency", rest=())
    yield replace(EQUAL, probe="mpi", metric="all_reduce", rest=())


def as_page(verdicts: tuple[Verdict, ...]) -> str:
    """A line for each element of the tables."""
    groups = enumerate(grouped((*verdicts, *(replace(v, margin=1.0) for v in verdicts[-1:]))))
    tables = "\n".join(str(verdict_table(group, f"table{at}")) for at, group in groups)
    return re.sub(r">(?=<[a-z])", ">\n", tables) + "\n"


@pytest.mark.parametrize(
    ("name", "render"), [("verdicts.txt", verdicts_text), ("verdicts.html", as_page)]
)
def test_comparisons_are_shown_as_they_were(
    name: str, render: Callable[[tuple[Verdict, ...]], str]
) -> None:
    """FLOWOS_UPDATE_GOLDEN=1 writes them anew."""
    shown, file = render(tuple(golden_verdicts())), GOLDEN / name
    if os.environ.get("FLOWOS_UPDATE_GOLDEN") == "1":
        file.write_text(shown)
    assert shown == file.read_text()


def test_one_lies_in_the_middle_of_an_interval_and_the_margin_around_it() -> None:
    """Positions are logarithmic: those of 1/1.21, 1/1.1, 1.1 and 1.21 lie a quarter apart."""
    v = replace(OPEN, margin=0.1, ratio=1.1, low=1 / 1.21, high=1.1)
    page = str(verdict_table(grouped((v, replace(v, low=1.0, high=1.21)))[0], "t"))
    first = page[page.index("<svg") : page.index("</svg>")]
    assert 'd="M75.0 1.0L75.0 19.0"' in first, "one"
    assert 'd="M4.0 10.0L110.5 10.0"' in first, "the interval"
    assert 'cx="110.5"' in first, "the ratio"
    (left,), (width,) = re.findall(r' x="([\d.]+)"', first), re.findall(r'width="([\d.]+)"', first)
    assert float(left) + float(width) == pytest.approx(110.5, abs=0.1)
    assert float(left) == pytest.approx(75 + 71 * math.log(0.9) / math.log(1.21), abs=0.1)


def test_the_first_line_sums_up() -> None:
    first = verdicts_text((FASTER, VERDICT, OPEN, EQUAL, DISTURBED)).splitlines()[0]
    assert first == (
        "5 comparisons: 2 slower, 1 inconclusive, 1 equal, 1 faster; 1 of them on disturbed"
        " rounds (!)"
    )


def test_the_overall_verdict_on_a_single_case_is_no_comparison_of_its_own() -> None:
    geomean = replace(EQUAL, probe="geomean", metric="stream", rest=())
    for alone, count in (((EQUAL,), "1 comparison: "), ((EQUAL, EQUAL), "3 comparisons: ")):
        assert verdicts_text((geomean, *alone)).startswith(count)


def test_what_is_trusted_and_what_was_disturbed_are_explained_in_one_line(small: Report) -> None:
    trusted = tuple(m for m in small.measurements if m.trust.good)
    both = (Entered(label="bare"), Entered(label="mine"))
    report = replace(
        small,
        run=replace(small.run, environments=both),
        measurements=trusted,
        verdicts=(DISTURBED,),
    )
    words = "by their quiet rounds; comparisons marked ! had to use disturbed ones, too"
    assert f"{len(trusted)} numbers; all can be trusted {words}" in text(report)
    for quiet in (replace(report, verdicts=(VERDICT,)), replace(report, run=small.run)):
        assert "quiet rounds" not in text(quiet)


def test_the_worst_is_first_and_the_best_last() -> None:
    slower = replace(VERDICT, ratio=0.5, low=0.4, high=0.6)
    shown = verdicts_text((FASTER, EQUAL, OPEN, VERDICT, slower))
    assert re.findall(r"(\d\.\d{3}) \(", shown) == ["0.500", "0.747", "0.900", "1.000", "1.200"]


def test_of_one_answer_what_has_no_ratio_is_last() -> None:
    never, measured = replace(OPEN, axis="first", ratio=math.nan), replace(OPEN, axis="second")
    assert grouped((never, measured))[0].rows == (measured, never)


def test_what_all_have_in_common_is_said_once_above_each_probes_table() -> None:
    other = replace(VERDICT, rest=(("threads", "1"), ("pages", "huge")), metric="copy")
    mine = replace(VERDICT, rest=(("threads", "2"), ("pages", "huge")))
    fio = replace(VERDICT, probe="fio", metric="fio", axis="engine", base="a", other="b")
    lines = verdicts_text((mine, other, fio)).splitlines()
    assert "stream: stores instead of nt (all with pages huge)" in lines
    assert "fio: engine instead of a (all with threads 2)" in lines
    assert any(line.endswith("triad, threads 2") for line in lines)
    assert sum("huge" in line for line in lines) == 1


def test_no_line_is_longer_than_100_columns_whatever_the_names() -> None:
    many = tuple(
        replace(
            v,
            axis=axis,
            base="a-compiler-of-some-length-12.2.0",
            other=f"another-of-length-{i}",
            rest=tuple((f"axis{j}", f"level-{j * (i + j)}") for j in range(7)),
            why="; ".join(
                f"reason {i} for so many words that no line holds them " * 2 for i in "ab"
            ),
        )
        for i, v in enumerate((VERDICT, OPEN, DISTURBED, OPEN_ENDED))
        for axis in ("compiler", "flags")
    )
    for shown in (verdicts_text(many), verdicts_text(many[:1] * 3)):
        assert max(map(len, shown.splitlines())) <= 100


def test_a_crowded_table_has_100_columns() -> None:
    """What the other columns need, the first and the last do without."""
    crowded = replace(OPEN, disturbed=3, rounds=32, needed=1000, why="a; b; c; d; e")
    far = tuple((f"axis{n}", "x") for n in range(30))
    rows = [
        replace(crowded, axis=axis, other="b" * 40, rest=rest)
        for axis, rest in (("compiler", far), ("flags", ()))
    ]
    lines = verdicts_text(rows).splitlines()
    assert max(map(len, lines)) == 100
    assert any(line.endswith("  x, x, x, x, x,") for line in lines)
    alike = [replace(row, rest=(), why="; ".join("abcdefghijk")) for row in rows]
    assert max(map(len, verdicts_text(alike).splitlines())) == 100


def test_a_reason_that_several_share_is_noted_once() -> None:
    lines = verdicts_text((OPEN, replace(OPEN, other="x"))).splitlines()
    assert lines.count("  [1] the interval is wide") == 1
    assert lines[-1] == "  [2] for more rounds: `flowos measure --only stream --minutes 3`"


def test_cases_that_were_never_compared_are_counted_and_not_listed() -> None:
    never = replace(OPEN_ENDED, rounds=0, ratio=math.nan, why="")
    shown = verdicts_text((VERDICT, never, never))
    assert "2 more: not measured there and back in one round" in shown
    assert "no ratio" not in shown
    command = "for more rounds: `flowos measure --minutes 3`"
    alone = verdicts_text((replace(never, why=f"never met; {command}"),))
    assert "answer" not in alone
    assert "never met" not in alone
    assert alone.endswith(f"  1: not measured there and back in one round\n  {command}\n")
    assert verdicts_text(()) == "nothing to compare: no case is in both\n"


def test_what_has_rounds_or_a_ratio_is_listed() -> None:
    """Of two runs there is a ratio without rounds; of rounds that were all left out, none."""
    unpaired = replace(OPEN, other="in-two-runs", rounds=0, needed=0)
    left_out = replace(OPEN, other="left-out", ratio=math.nan)
    shown = verdicts_text((unpaired, left_out))
    assert "in-two-runs" in shown
    assert "left-out" in shown
    assert "not measured there and back" not in shown


def test_an_open_answer_says_what_is_known_and_how_many_rounds_would_tell(small: Report) -> None:
    assert known(OPEN) == "from 40% slower to 21% faster"
    assert known(OPEN_ENDED) == known(VERDICT) == ""
    assert known(replace(OPEN, low=0.0)) == known(replace(OPEN, high=math.inf)) == ""
    assert known(replace(OPEN, low=1.0, high=1.05)) == "from 0.0% faster to 5.0% faster"
    assert rounds_of(OPEN) == "4 of ~10"
    page = html(replace(small, verdicts=(OPEN,)))
    assert "from 40% slower to 21% faster" in page
    assert "<code>flowos measure --only stream --minutes 3</code>" in page


def test_a_verdict_on_disturbed_rounds_is_marked_in_every_format(small: Report) -> None:
    definite, report = VERDICT, replace(small, verdicts=(DISTURBED,))
    assert "slower !" in text(report)
    assert "slower, NOT TRUSTED (8 of 8 rounds disturbed)" in markdown(report)
    assert "not trusted: 8 of 8 rounds disturbed" in html(report)
    assert '"disturbed":8' in json(report)
    assert read_json(json(report)).verdicts == (DISTURBED,)
    quiet = replace(small, verdicts=(definite,))
    assert "slower !" not in text(quiet)
    assert "rounds disturbed" not in markdown(quiet) + html(quiet)


def test_a_verdict_kept_by_an_older_version_is_still_read(small: Report) -> None:
    old = json(replace(small, verdicts=(VERDICT,)))
    for field in (',"disturbed":0', ',"needed":0', ',"ceiling":false', ',"named":[]'):
        assert field in old
        old = old.replace(field, "")
    assert read_json(old).verdicts == (VERDICT,)


def test_columns_in_which_nothing_is_said_are_left_out(small: Report) -> None:
    plain: Verdict = replace(VERDICT, why="")
    page = html(replace(small, verdicts=(plain,)))
    table = page[page.index('class="comparison"') :]
    assert ">why<" not in table
    assert ">at<" not in table


def test_environments_of_one_case_stand_together_the_case_with_the_worst_first() -> None:
    verdicts = [
        replace(VERDICT, axis="env", base="bare", other=env, rest=(("way", way),), ratio=ratio)
        for way, env, ratio in (
            ("exec", "i@ch-run", 0.94),
            ("shell", "i@ch-run", 0.95),
            ("exec", "i@podman", 0.93),
            ("shell", "i@podman", 0.5),
        )
    ]
    lines = verdicts_text(verdicts).splitlines()[2:]
    assert [" ".join(line.split()[:3]) for line in lines] == [
        "stream triad: env",
        "env answer ratio",
        "shell",
        "i@podman slower 0.500",
        "i@ch-run slower 0.950",
        "exec",
        "i@podman slower 0.930",
        "i@ch-run slower 0.940",
    ]
    one_case = verdicts_text(verdicts[::2]).splitlines()
    assert one_case[2] == "stream triad: env instead of bare (all with way exec)"
    assert not any("exec" in line for line in one_case[3:])
    assert one_case[3].startswith("  env ")


def test_several_settings_are_ordered_by_what_they_cost_whatever_their_case() -> None:
    other = replace(VERDICT, axis="threads", base="1", other="2", rest=(("pages", "huge"),))
    rows = [replace(VERDICT, ratio=0.5), replace(other, ratio=0.6), replace(VERDICT, ratio=0.7)]
    shown = verdicts_text((rows[2], rows[0], rows[1]))
    assert re.findall(r"(\d\.\d{3}) \(", shown) == ["0.500", "0.600", "0.700"]
