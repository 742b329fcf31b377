"""Cards: which number, of which setting, against which ceiling."""

import math
import re
from dataclasses import replace

import pytest

from flowos.model import Trust
from flowos.report import HeadlineNumber, Report, html


def test_a_card_says_that_it_is_the_ceiling_and_shows_the_best_as_its_table_does(
    small: Report,
) -> None:
    ceiling = replace(small.measurements[1], ceiling=True, shares=small.measurements[1].shares[1:])
    for m, told in (
        (ceiling, "this is the measured ceiling"),
        (replace(ceiling, shares=()), "this is the ceiling"),
    ):
        rows = (m, *small.measurements[:1])
        report = replace(
            small, measurements=rows, headlines=(HeadlineNumber(label="L", measured=m),)
        )
        page = html(report)
        card = page[page.index('class="cards"') : page.index("What not to believe")]
        assert told in card
        assert "62.4<small>" in card
        assert "best of 12 repetitions" in card
        assert "<b>62.4\u00a0GB/s</b>" in page
        assert "<b>61.2\u00a0GB/s</b>" not in page


def test_a_rate_whose_ceiling_nobody_knows_says_so_and_a_time_has_none(small: Report) -> None:
    rate = replace(small.measurements[1], shares=())
    for m, told in ((rate, "no ceiling is known"), (replace(rate, unit="second"), "of rates")):
        headline = HeadlineNumber(label="L", measured=m)
        page = html(replace(small, measurements=(m,), headlines=(headline,)))
        assert told in page


def test_a_card_has_its_number_its_ceilings_its_spread_and_its_trust(small: Report) -> None:
    cards = html(small).partition('class="cards">')[2].partition("</ul>")[0].replace("\xa0", " ")
    first, second = (re.findall(r">([^<]+)<", f"{card}<") for card in cards.split("<li ")[1:])
    assert first == [
        "STREAM triad",
        "61.2",
        " GB/s",
        "99% of the measured ceiling, 62.0 GB/s",
        "80% of the nominal ceiling, 76.8 GB/s",
        "median of 12 repetitions, middle half 60.6 to 61.8 GB/s",
        "with threads 2, nt",
        "\N{CHECK MARK} trusted",
    ]
    assert second[-1] == (
        "\N{BLACK UP-POINTING TRIANGLE} not trusted: a write cache answers; and 1 other reason"
    )
    assert "<p>99%" in cards, "the ceiling that the meter is of"
    assert '<p class="note">80%' in cards
    assert [card.partition('"')[2].partition('"')[0] for card in cards.split("<li ")[1:]] == [
        "card",
        "card untrusted",
    ]


@pytest.mark.parametrize(
    ("share", "width"), [(0.805, "80.5"), (0.0, "0.0"), (1.2, "100.0"), (math.nan, "0.0")]
)
def test_a_meter_is_as_full_as_the_share_of_the_ceiling(
    share: float, width: str, small: Report
) -> None:
    m = small.measurements[1]
    shown = replace(m, shares=(replace(m.shares[0], value=share),))
    page = html(replace(small, headlines=(HeadlineNumber(label="L", measured=shown),)))
    assert f'<div class="meter"><i style="width:{width}%">' in page


def test_a_card_names_the_setting_that_its_label_does_not(small: Report) -> None:
    shown = small.measurements[1]
    for named, told in (((), "with threads 2, nt<"), (("threads",), "with nt<")):
        headline = HeadlineNumber(label="Triad", measured=shown, named=named)
        assert told in html(replace(small, headlines=(headline,)))
    once = replace(shown, count=1)
    page = html(replace(small, headlines=(HeadlineNumber(label="Triad", measured=once),)))
    assert "measured once" in page


def test_what_speaks_against_several_cards_is_said_once_with_their_number(small: Report) -> None:
    stolen = Trust(marks=("the hypervisor took 12.0% of the cpu time",))
    marked = [replace(m, trust=stolen) for m in small.measurements[:3]]
    headlines = tuple(HeadlineNumber(label=f"H{n}", measured=m) for n, m in enumerate(marked))
    page = html(replace(small, measurements=tuple(marked), headlines=headlines))
    cards = page[: page.index('id="trust"')]
    assert cards.count("the hypervisor took") == 1
    assert "3 of 3 not trusted: the hypervisor took 12.0% of the cpu time" in cards
    alone = html(replace(small, measurements=(marked[0],), headlines=headlines[:1]))
    assert "not trusted: the hypervisor took" in alone[: alone.index('id="trust"')]
    assert "1 of 1" not in alone
    both = html(replace(small, measurements=tuple(marked[:2]), headlines=headlines[:2]))
    assert "2 of 2 not trusted: the hypervisor took" in both[: both.index('id="trust"')]


def test_a_ceiling_that_nobody_knows_is_not_named_on_a_card(small: Report) -> None:
    page = html(small)
    assert "ceiling unknown" not in page[: page.index('id="trust"')]
