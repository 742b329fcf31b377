"""Tables of lists in a narrow window, and what of them is added up."""

from dataclasses import replace

from flowos.model import Price
from flowos.report.site import overview_html, program_html
from flowos.report.site._tables import table

from .test_site import NOW, OVER, overview, program, slice_of, waiting


def test_short_words_are_whole_and_long_ones_are_divided() -> None:
    rows = [("a", "Resources", "1"), ("b", 300 * "q", "2")]
    shown = table("Slices", ("slice", "why", "cost>"), rows)
    assert '<td class="whole">Resources<' in shown
    assert f"<td>{300 * 'q'}<" in shown
    assert shown.count('<td class="n">') == 2


def test_slices_that_wait_have_no_part_in_the_cost_of_what_is_held() -> None:
    waits = waiting(id="b", price=Price(per_node_hour=18.0, currency="JPY"))
    page = overview_html(overview(host="h", running=(program(),), slices=(slice_of(), waits)))
    assert "1.20\N{NO-BREAK SPACE}EUR" in page
    assert "JPY" not in page


def test_of_a_program_that_was_killed_no_duration_is_made_up() -> None:
    """Its last sign of life may be that of its first second."""
    lost = replace(OVER, state="lost", ended="2026-11-20T10:00:01Z")
    for over, shown in ((OVER, "125"), (lost, "1.00\N{NO-BREAK SPACE}s")):
        page = overview_html(overview(host="h", over=(over,)))
        assert (shown in page) == (over is OVER)
    page = program_html(lost, NOW)
    assert "from 2026-11-20 10:00 UTC, last seen at 2026-11-20 10:00 UTC" in page
