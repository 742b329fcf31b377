"""What to do stands first in every format, the greatest gain at its head."""

import json as text_of
from dataclasses import replace

from flowos.model import Advice
from flowos.report import Report, html, json, markdown, text

BLIS = Advice(do="`export BLIS_ARCH_TYPE=skx`", gain=5.7, why="blis chose its generic kernels")
PAGES = Advice(do="huge pages", gain=1.07, why="STREAM triad", trusted=False)


def test_what_to_do_stands_before_all_numbers_in_every_format(small: Report) -> None:
    report = replace(small, advice=(BLIS, PAGES))
    for rendered, command, numbers in (
        (text(report), "x5.70  `export BLIS_ARCH_TYPE=skx`", "middle half"),
        (markdown(report), "- **x5.70** `export BLIS_ARCH_TYPE=skx`: blis chose", "## Headlines"),
        (html(report), "<code>export BLIS_ARCH_TYPE=skx</code>", 'id="headlines"'),
    ):
        at = rendered.index("Do this")
        assert at < rendered.index(command) < rendered.index("huge pages")
        assert rendered.index("huge pages") < rendered.index(numbers)
        assert "x1.07" in rendered
        assert "STREAM triad (measured while the machine was disturbed)" in rendered
    assert text_of.loads(json(report))["report"]["advice"][0]["gain"] == 5.7


def test_nothing_to_do_is_said_in_one_line_and_what_was_not_looked_for_not_at_all(
    small: Report,
) -> None:
    for render in (text, markdown, html):
        shown = render(replace(small, advice=()))
        assert "Nothing: no setting that was tried was shown to be better." in shown
        assert "Do this" not in render(replace(small, advice=None))


def test_where_no_setting_could_be_judged_it_says_why_and_how_to_mend_it(small: Report) -> None:
    why = "only one setting was measured; to mend it: `flowos measure --minutes 9`"
    report = replace(small, advice=(), undecided=why)
    for render in (text, markdown, html):
        assert "Undecided: only one setting was measured; to mend it: " in render(report)
        assert "Nothing: no setting" not in render(report)
    assert "<code>flowos measure --minutes 9</code>" in html(report)
